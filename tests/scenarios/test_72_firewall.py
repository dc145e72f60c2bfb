# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two nodes that refuse by default train together, and an outsider gets nowhere; firewalld, ufw and nftables of Debian 12.

Hosts of the lab have a network of their own and share a kernel, whose nf_tables and conntrack these are.
"""

import difflib
import json
import time

import launchers
import pytest
from cluster import KEEP, Cluster

pytestmark = pytest.mark.lab

PLAYBOOK = "tests/scenarios/firewall.yml"
TABLE = "table inet allreduce"
NOTHING_ELSE = {"gpu_stack_request": {"pytorch": "2.13.0", "pytorch_index": "cpu"}, "nvidia_driver_without_gpu": False}
STATE = (
    "find /etc /opt/allreduce /var/lib/allreduce -xdev -not -path '/etc/ssh/*' -not -path '*/__pycache__*'"
    " -not -path '/var/lib/allreduce/runs*'"
    " -printf '%p %y %m %u:%g %l\\n' 2>/dev/null | LC_ALL=C sort;"
    " find /etc -xdev -type f -not -path '/etc/ssh/*' -exec md5sum {} + | LC_ALL=C sort;"
    " nft list ruleset 2>/dev/null | sed 's/packets [0-9]* bytes [0-9]*//'; cat /proc/sys/net/ipv4/ip_local_*port*"
)
# A firewall of the site's own: what is not let in is dropped.
DENY = """
table inet site {
  chain in {
    type filter hook input priority filter; policy drop;
    iifname "lo" accept
    ct state established,related accept
    meta l4proto { icmp, ipv6-icmp } accept
    tcp dport 22 accept
  }
}
"""
INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends %s >/dev/null 2>&1"
OFF = "ufw --force disable; systemctl disable --now firewalld ufw nftables; nft flush ruleset; true"
OWNERS = {
    "nftables": f"printf '%s' '#!/usr/sbin/nft -f\nflush ruleset\n{DENY}' > /etc/nftables.conf; systemctl enable --now nftables",
    "ufw": "ufw allow 22/tcp && ufw --force enable",
    "firewalld": "systemctl enable --now firewalld && firewall-cmd --state",
}
# Reports a connection as open, closed (refused) or lost (no answer).
ASK = """
import socket, sys
for port in sys.argv[2:]:
    one = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
    one.settimeout(2)
    try:
        one.connect((sys.argv[1], int(port))); print(port, "open")
    except ConnectionRefusedError:
        print(port, "closed")
    except OSError:
        print(port, "lost")
"""
LISTEN = "systemctl is-active -q listen-{0} || systemd-run -q --collect --unit=listen-{0} python3 -m http.server {0} >/dev/null"


class Three:
    """Two nodes, an outsider on the same network, and the role played against the nodes."""

    def __init__(self):
        self.cluster = Cluster("firewall", 3)
        *self.nodes, self.outsider = self.cluster.hosts
        self.addresses = {host: self.ask(host, "hostname -I").split()[0] for host in self.cluster.hosts}
        self.inventory = self.group(self.nodes)

    def ask(self, host, command, check=True):
        return self.cluster.on(host, command, check)

    def install(self, host, packages):
        self.ask(host, INSTALL % packages)

    def listen(self, host):
        for port in (1023, 5432, 41000):
            self.ask(host, LISTEN.format(port))

    def group(self, nodes):
        """An inventory in which these are the GPU nodes."""

        def change(content):
            hosts = content["gpu_nodes"]["hosts"]
            content["gpu_nodes"]["hosts"] = {name: hosts[name] for name in nodes}

        place = self.cluster.inventory.with_name("firewall-" + "-".join(nodes))
        return self.cluster.edit_inventory(place, change)

    def play(self, *options, playbook=PLAYBOOK, inventory=None, **variables):
        options = ("-e", json.dumps({**NOTHING_ELSE, **variables}), *options)
        return self.cluster.play(playbook, *options, inventory=inventory or self.inventory)

    def present(self, *options, inventory=None, **variables):
        """The number of changes of each node."""
        run = self.play(*options, inventory=inventory, firewall_state="present", **variables)
        assert run.status == 0, run.output[-6000:]
        return {node: run.recap[node]["changed"] for node in self.nodes if node in run.recap}

    def seen(self, start, target, *ports):
        """{port: open, closed or lost}, as seen from a host."""
        self.ask(start, f"cat > /root/ask.py <<'END'\n{ASK}END")
        words = " ".join(map(str, ports))
        lines = self.ask(start, f"python3 /root/ask.py {self.addresses[target]} {words}").split("\n")
        return {int(line.split()[0]): line.split()[1] for line in lines if line}

    def state(self):
        return {node: self.ask(node, STATE).splitlines() for node in self.nodes}

    def other_than(self, before):
        """The lines in which the state of the nodes differs from an earlier one."""
        now = self.state()
        differences = (line for node in self.nodes for line in difflib.unified_diff(before[node], now[node], n=0))
        return [line for line in differences if not line.startswith(("---", "+++", "@@"))]


@pytest.fixture(scope="module")
def three():
    made = Three()
    for node in made.nodes:
        made.ask(node, "apt-get update -qq")
        made.install(node, "nftables iptables ufw firewalld")
        made.ask(node, OFF)
    tags = "base,python_env,frameworks,cluster_ssh"
    run = made.play("--tags", tags, playbook="playbooks/site.yml")
    assert run.status == 0, run.output[-6000:]
    launchers.install(made)
    for node in made.nodes:
        made.listen(node)
    yield made
    if not KEEP:
        made.cluster.down()


@pytest.fixture(params=OWNERS)
def before(three, request):
    """Nodes that refuse by default, and what they were before the role."""
    for node in three.nodes:
        three.ask(node, OFF)
        three.ask(node, OWNERS[request.param])
    first, second = three.nodes
    assert set(three.seen(first, second, 22, 5432, 41000).items()) & {
        (22, "open"),
        (5432, "open"),
        (41000, "open"),
    } == {(22, "open")}
    yield three.state()
    for node in three.nodes:
        three.ask(node, OFF)


def test_peers_get_in_and_nobody_else(three, before):
    first, second = three.nodes
    off = three.play()
    assert off.status == 0, off.output[-6000:]
    assert all(off.recap[node]["changed"] == 0 for node in three.nodes)
    # Check mode and diff predict, and change nothing.
    run = three.play("--check", "--diff", firewall_state="present")
    assert run.status == 0 and run.recap[first]["changed"], run.output[-6000:]
    assert three.addresses[second] in run.output
    assert three.other_than(before) == []
    assert all(three.present().values())
    assert three.present() == dict.fromkeys(three.nodes, 0)
    # The next run does not send the module that applies.
    assert three.cluster.measured(first, "firewall_facts")["applied"]
    for one, other in ((first, second), (second, first)):
        assert three.seen(one, other, 22, 5432, 41000) == {22: "open", 5432: "open", 41000: "open"}
        outside = three.seen(three.outsider, other, 22, 1023, 5432, 41000, 29500, 65535)
        assert outside.pop(22) == "open" and "open" not in outside.values(), outside
        # Privileged ports are as they were for peers, too.
        assert three.seen(one, other, 1023)[1023] != "open"
    run = three.play()
    assert run.status == 0 and all(run.recap[node]["changed"] for node in three.nodes), run.output[-6000:]
    assert three.other_than(before) == []


def listening(three, node):
    """Ports that processes of the training user listen on, but for those that only the node itself reaches."""
    pids = three.ask(node, "pgrep -u trainer . || true").split()
    lines = three.ask(node, "ss -Hlntup").splitlines()
    mine = [line.split() for line in lines if any(f"pid={pid}," in line for pid in pids)]
    return {int(one[4].rpartition(":")[2]) for one in mine if not one[4].startswith(("127.", "[::1]"))}


# Horovod's services take any port from 1024 on, so strict mode is not for it.
TRAININGS = [
    (one, strict) for one in launchers.LAUNCHERS for strict in (False, True) if (one, strict) != ("horovodrun", True)
]


@pytest.mark.parametrize(("launcher", "strict"), TRAININGS)
@pytest.mark.parametrize("before", ["nftables"], indirect=True)
def test_a_training_passes_and_the_outsider_reaches_none_of_its_ports(three, before, launcher, strict, tmp_path):
    assert all(three.present(firewall_strict=strict).values())
    process = launchers.start(launcher, three, tmp_path, strict)
    try:
        deadline = time.monotonic() + 120
        while not all(launchers.began(three, node) for node in three.nodes):
            assert time.monotonic() < deadline and process.poll() is None, launchers.ended(three, process)
            time.sleep(2)
        ports = {node: listening(three, node) for node in three.nodes}
        assert ports[three.nodes[0]]  # ranks of Horovod listen until they have found each other
        for node, found in ports.items():
            outside = three.seen(three.outsider, node, 22, *found)
            assert outside.pop(22) == "open"
            assert set(outside) == found and "open" not in outside.values(), outside
            if strict:
                assert all(50000 <= port <= 50999 or port in (29400, 29500) for port in found), found
        output = process.communicate(timeout=300)[0]
    finally:
        launchers.ended(three, process)
    assert process.returncode == 0, output[-6000:]
    assert launchers.finished(launcher, three), output[-6000:]
    run = three.play()
    assert run.status == 0
    assert three.other_than(before) == []


@pytest.mark.parametrize("before", ["nftables"], indirect=True)
def test_what_the_node_keeps_and_what_verify_says(three, before, tmp_path):
    first, second = three.nodes
    three.present()
    # The distribution's own reload begins with a flush of all rules.
    three.ask(first, "systemctl reload nftables")
    assert three.present() == dict.fromkeys(three.nodes, 0)
    three.ask(first, "systemctl restart nftables")
    assert three.present() == dict.fromkeys(three.nodes, 0)
    assert checks(three, tmp_path) == {"firewall_rules": "passed", "firewall_peers": "passed"}
    three.ask(first, "nft flush set inet allreduce peers4")
    assert checks(three, tmp_path)["firewall_peers"] == "failed"
    three.ask(first, "nft delete table inet allreduce")
    assert three.present()[first]
    # A node that left the inventory is shut out by those that stay.
    three.present(inventory=three.group([first]))
    assert three.seen(second, first, 22, 41000) == {22: "open", 41000: "closed"}
    assert three.present()[first]
    run = three.play()
    assert run.status == 0
    assert three.other_than(before) == []


def checks(three, place):
    more = {"report_directory": str(place), "verify_collectives": False, "verify_peers": []}
    run = three.play(playbook="playbooks/verify.yml", firewall_state="present", **more)
    assert (place / "verify.json").exists(), run.output[-6000:]
    node = json.loads((place / "verify.json").read_text(encoding="utf-8"))["nodes"][three.nodes[0]]
    (place / "verify.json").unlink()
    return {one["name"]: one["status"] for one in node["checks"] if one["name"].startswith("firewall_")}


@pytest.mark.parametrize("restarted", [False, True], ids=["timer", "restart"])
@pytest.mark.parametrize("before", ["nftables"], indirect=True)
def test_a_node_that_shuts_the_play_out_comes_back_by_itself(three, before, restarted):
    """The module as the role calls it, with rules that no plan would make."""
    node = three.nodes[0]
    three.present()
    kept = three.state()
    run = three.play("--limit", node, playbook="tests/scenarios/firewall_lost.yml")
    assert run.status != 0 and run.recap[node]["unreachable"] == 1, run.output[-6000:]
    assert three.seen(three.outsider, node, 22)[22] != "open"
    deadline = time.monotonic() + 150
    if restarted:  # before the timer: the unit puts back, within its sandbox
        boot = three.ask(node, "stat -c %Y /proc/1")
        three.ask(node, "systemctl reboot", check=False)
        while three.ask(node, "stat -c %Y /proc/1", check=False) in ("", boot):
            assert time.monotonic() < deadline
            time.sleep(1)
    while three.seen(three.outsider, node, 22)[22] != "open":
        assert time.monotonic() < deadline, three.ask(
            node, "systemctl list-timers --all; nft list table inet allreduce"
        )
        time.sleep(2)
    if restarted:
        three.ask(node, "systemctl is-system-running --wait || true")
        assert three.ask(node, "systemctl show -P Result -P ActiveState allreduce-firewall").split() == [
            "success",
            "active",
        ]
        three.listen(node)
    assert three.other_than(kept) == []
    assert three.present() == dict.fromkeys(three.nodes, 0)
    run = three.play()
    assert run.status == 0
    assert three.other_than(before) == []


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"firewall_owner": "shorewall"}, "firewall_owner (set on the command line) is 'shorewall'; choose from"),
        (
            {"firewall_extra_sources": ["head"]},
            "firewall_extra_sources has 'head', which is not an IP address or a network",
        ),
    ],
)
def test_bad_input_is_refused_before_anything_changes(three, variables, sentence):
    before = three.state()
    run = three.play(playbook="playbooks/site.yml", firewall_state="present", **variables)
    assert run.status != 0 and sentence in run.words, run.output[-6000:]
    assert three.other_than(before) == []


def test_an_interface_that_a_node_lacks_is_refused_before_anything_changes(three):
    before = three.state()
    run = three.play(firewall_state="present", firewall_interfaces=["ib7"])
    assert run.status != 0 and "firewall_interfaces has ib7, which this node lacks; choose from eth0" in run.words
    assert three.other_than(before) == []
