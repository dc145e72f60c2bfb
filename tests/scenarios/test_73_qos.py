# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Training keeps its share of a link beside a bulk flow, and all of it goes back; tc, nft and iperf3 of Debian 12.

Hosts of the lab have a network namespace of their own, so classes and rules are real. Their kernel is one, without fq_codel,
and they have no udev: the unit of an interface is started by hand here.
"""

import json

import pytest
from cluster import KEEP, Cluster

pytestmark = pytest.mark.lab

PLAYBOOK = "tests/scenarios/qos.yml"
LINK, GUARANTEE = 100e6, 80e6
TRAINING, BULK = 5201, 5301
WANTED = {"qos_state": "present", "qos_rate": "100mbit", "qos_guarantee": "80%", "qos_ports": [TRAINING]}
# A frame of 1514 bytes carries 1448 of payload: headers of Ethernet, IP and TCP with time stamps.
PAYLOAD = 1448 / 1514
STATE = (
    "find /etc /opt/allreduce /var/lib/allreduce -xdev -not -path '/etc/ssh/*' -printf '%p %y %m %u:%g %l\\n' 2>/dev/null"
    " | LC_ALL=C sort; find /etc -xdev -type f -not -path '/etc/ssh/*' -exec md5sum {} + | LC_ALL=C sort;"
    " tc qdisc show; tc filter show dev eth0 ingress; ip -o link show | cut -d' ' -f2-9; nft list ruleset"
)
INSTALL = "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nftables iperf3 >/dev/null 2>&1"
SERVE = "systemd-run -q --collect --unit=iperf-%d iperf3 -s -p %d"


class Two:
    """Two nodes, and the role played against them."""

    def __init__(self):
        self.cluster = Cluster("qos", 2, "--distribution", "debian12")
        self.first, self.second = self.cluster.hosts
        for host in self.cluster.hosts:
            self.ask(INSTALL, host)
            for port in (TRAINING, BULK):
                self.ask(SERVE % (port, port), host)
        self.target = self.ask("hostname -I", self.second).split()[0]

    def ask(self, command, host=None):
        return self.cluster.on(host or self.first, command)

    def play(self, *options, playbook=PLAYBOOK, **variables):
        return self.cluster.play(playbook, "-e", json.dumps(variables), *options)

    def shape(self, *options, **more):
        """The run, and the number of changes of the first node."""
        run = self.play(*options, **{**WANTED, **more})
        assert run.status == 0, run.output[-6000:]
        return run, run.recap[self.first]["changed"]

    def state(self):
        return {host: self.ask(STATE, host).splitlines() for host in self.cluster.hosts}

    def send(self, port, seconds, *more):
        """Payload in bit/s that the second node received from the first."""
        words = f"iperf3 -J -c {self.target} -p {port} -t {seconds} -O 2 {' '.join(more)}"
        return json.loads(self.ask(words))["end"]["sum_received"]["bits_per_second"]


@pytest.fixture(scope="module")
def two():
    made = Two()
    yield made
    if not KEEP:
        made.cluster.down()


@pytest.fixture(scope="module")
def before(two):
    """The hosts as they are before the first change."""
    run = two.play()
    assert run.status == 0 and run.recap[two.first]["changed"] == 0, run.output[-6000:]
    return two.state()


def test_check_mode_shows_the_class_table_and_changes_nothing(two, before):
    run, changes = two.shape("--check", "--diff")
    assert changes
    for line in (
        "-qdisc noqueue 0: root",
        "+class a11e:10 prio 0 rate 80mbit ceil 100mbit",
        f"th dport {{ {TRAINING} }}",
    ):
        assert line in run.output, run.output[-6000:]
    assert two.state() == before


def test_apply_and_again(two, before):
    assert two.shape()[1]
    assert two.shape()[1] == 0
    assert two.shape("--check", "--diff")[1] == 0
    # The next run does not send the module that applies.
    assert two.cluster.measured(two.first, "qos_facts")["applied"]


def test_training_alone_has_the_link(two):
    """As everything else does, when there is no training."""
    for port in (TRAINING, BULK):
        assert two.send(port, 8) >= 0.95 * LINK * PAYLOAD


@pytest.mark.parametrize("ingress", [False, True])
def test_training_keeps_its_guarantee_beside_a_bulk_flow(two, ingress):
    """On its way out, and, where it is asked for, on its way in; at the other end nothing is held back any more then."""
    two.shape(qos_ingress=ingress)
    if ingress:
        two.ask("tc qdisc del dev eth0 root")
    name = f"bulk-{int(ingress)}"
    two.ask(f"systemd-run -q --collect --unit={name} iperf3 -c {two.target} -p {BULK} -t 40 -P 4")
    try:
        received = two.send(TRAINING, 10)
    finally:
        two.ask(f"systemctl stop {name}; true")
    assert received >= 0.95 * GUARANTEE * PAYLOAD
    # The bulk flow was there: without classes, each of five streams would have had a fifth.
    assert received <= 0.95 * LINK * PAYLOAD
    assert two.shape(qos_ingress=ingress)[1] == (1 if ingress else 0)


def test_it_comes_back(two):
    """After a flush by the distribution's own service, for an interface by its unit, and at the start of the system."""
    two.shape()
    classes, rules = two.ask("tc class show dev eth0"), two.ask("nft list table inet allreduce_qos")
    assert classes.count("class htb a11e:") == 3
    two.ask("systemctl start nftables; systemctl reload nftables")
    assert two.ask("nft list table inet allreduce_qos") == rules
    two.ask("tc qdisc del dev eth0 root; systemctl start allreduce-qos@eth0.service")
    assert two.ask("tc class show dev eth0") == classes
    two.ask("tc qdisc del dev eth0 root; nft flush ruleset; systemctl restart allreduce-qos.service")
    assert two.ask("tc class show dev eth0") == classes and two.ask("nft list table inet allreduce_qos") == rules
    assert two.ask("systemctl is-enabled allreduce-qos.service").strip() == "enabled"
    # Stopped, it flushes all rules for good, and the next run loads ours again.
    two.ask("systemctl stop nftables")
    assert two.shape()[1] == 1
    assert two.shape()[1] == 0


def test_verify_reads_it_back(two, tmp_path):
    two.shape()
    found = verified(two, tmp_path)
    assert {one["name"]: one["status"] for one in found["checks"]} == {"qos_rules": "passed", "qos_shares": "passed"}
    classes = found["fact"]["interfaces"]["eth0"]["shaped"]["classes"]
    assert {one["handle"]: one["rate"] for one in classes}["a11e:10"] == GUARANTEE
    two.ask("tc class change dev eth0 parent a11e:1 classid a11e:10 htb rate 10mbit ceil 100mbit")
    (shares,) = [one for one in verified(two, tmp_path)["checks"] if one["name"] == "qos_shares"]
    assert "training on eth0 is 10mbit to 100mbit instead of 80mbit to 100mbit" in shares["reason"]
    assert two.shape()[1]


def verified(two, place):
    more = {"report_directory": str(place), "verify_collectives": False, "verify_peers": []}
    run = two.play(playbook="playbooks/verify.yml", **WANTED, **more)
    assert (place / "verify.json").exists(), run.output[-6000:]
    node = json.loads((place / "verify.json").read_text(encoding="utf-8"))["nodes"][two.first]
    (place / "verify.json").unlink()
    return {"checks": [one for one in node["checks"] if one["name"].startswith("qos_")], "fact": node["gpu_qos"]}


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"qos_rate": "100gbit"}, "qos_rate is 100gbit, and HTB, which takes one lock for every packet"),
        ({"qos_guarantee": "most"}, "qos_guarantee is 'most'; write a rate as tc takes it"),
    ],
)
def test_bad_input_is_refused_before_anything_changes(two, variables, sentence):
    """Under a limit, the recap counts the check of the input for the first host that is left; none is contacted for it."""
    state = two.state()
    run = two.play("--limit", two.second, playbook="playbooks/site.yml", **{**WANTED, **variables})
    assert run.status != 0 and sentence in run.words, run.output[-6000:]
    assert run.recap[two.second]["ok"] == 0 and two.state() == state


def test_removal_restores_byte_for_byte(two, before):
    run = two.play()
    assert run.status == 0 and run.recap[two.first]["changed"] > 0, run.output[-6000:]
    assert two.state() == before
    assert two.play().recap[two.first]["changed"] == 0


def test_an_interface_of_somebody_else_is_left_alone(two, before):
    two.ask("tc qdisc add dev eth0 root handle 1: htb")
    run = two.play(**WANTED)
    two.ask("tc qdisc del dev eth0 root")
    assert run.status != 0 and "eth0 has the queueing discipline htb 1:, which another program has set" in run.words
    run = two.play()
    assert run.status == 0 and two.state() == before
