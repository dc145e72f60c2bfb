# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two machines that keep an outsider out while they boot, too, and training's share of the link when its driver is loaded again.

Containers share a kernel: its modules are loaded already, it lacks fq_codel, no udev tells systemd of an interface, and the network is
there before the first unit starts.
"""

import json
import re
import time

import pytest
from cluster import KEEP, Cluster
from machine_hosts import Machines

pytestmark = pytest.mark.lab

PORT, TRAINING, BULK = 41000, 5201, 5301
# So slow that the burst of a class, 16,000 bytes, lasts 25 ms: an emulator's timer is late by more than the 6 ms of 20 Mbit/s.
RATE, GUARANTEE = 5e6, 4e6
SHAPED = {"qos_state": "present", "qos_rate": "5mbit", "qos_guarantee": "80%", "qos_ports": [TRAINING]}
OPEN = {"firewall_state": "present"}
# A service that listens before the network is there, as one that is enabled too early may.
LISTENER = f"""
cat > /etc/systemd/system/listener.service <<'END'
[Unit]
DefaultDependencies=no
After=local-fs.target
[Service]
ExecStart=/usr/bin/python3 -m http.server {PORT} --directory /run
[Install]
WantedBy=sysinit.target
END
systemctl enable -q --now listener
"""
# Asks for the ports of an address without a pause, for so many seconds, and prints each that answers, once.
ASK = """
import socket, sys, time
address, seconds, *ports = sys.argv[1:]
end = time.monotonic() + float(seconds)
while ports and time.monotonic() < end:
    for port in list(ports):
        with socket.socket() as one:
            one.settimeout(0.3)
            if one.connect_ex((address, int(port))) == 0:
                print(port, flush=True)
                ports.remove(port)
"""
HOUR = 3600
UP = "systemctl show --value --property ActiveEnterTimestampMonotonic "
# The link goes with its driver, and is another one when it comes back.
RELOAD = "systemd-run --quiet --collect sh -c 'modprobe -r virtio_net; sleep 2; modprobe virtio_net'"
SERVE = "systemd-run --quiet --collect --unit=iperf-{0} iperf3 -s -p {0}"


class Guarded(Machines):
    """Two machines, and an outsider on their network."""

    def __init__(self):
        super().__init__("guarded", 2)
        self.node, self.peer = self.hosts
        self.beyond = Cluster("outsider", 1)
        self.outsider = self.beyond.hosts[0]
        for host in self.hosts:
            self.on(host, "apt-get update -qq && apt-get install -y -qq iperf3 nftables > /dev/null 2>&1")
        route = self.on(self.node, f"ip -o route get {self.machine(self.peer).address}")
        self.link = route.split(" dev ")[1].split()[0]
        self.on(self.node, LISTENER)
        self.beyond.on(self.outsider, f"cat > /root/ask.py <<'END'\n{ASK}END")

    def role(self, name, **variables):
        """The number of changes of the first machine."""
        run = self.play(f"tests/scenarios/{name}.yml", "-e", json.dumps(variables))
        assert run.status == 0, run.output[-6000:]
        return run.recap[self.node]["changed"]

    def asking(self, seconds):
        return f"- {self.machine(self.node).address} {seconds} 22 {PORT}"

    def seen_outside(self):
        """Ports of the first machine that the outsider gets into."""
        return self.beyond.on(self.outsider, f"python3 {self.asking(3)} < /root/ask.py").split()

    def seen_by_peer(self):
        return self.on(self.peer, f"python3 {self.asking(3)} <<'END'\n{ASK}END").split()

    def classes(self):
        """Classes and queueing disciplines of the link, as tc shows them; without fq_codel's own of a flow, and handles of the kernel's choice."""
        printed = self.on(self.node, f"tc class show dev {self.link}; tc qdisc show dev {self.link}")
        lines = [line for line in printed.splitlines() if not line.startswith("class fq_codel")]
        return sorted(re.sub(r"(leaf|fq_codel) [0-9a-f]+:", r"\1", line) for line in lines)

    def carried(self):
        """Bytes that each class of the link has carried; 1 is all of them."""
        printed = self.on(self.node, f"tc -s class show dev {self.link}")
        found = re.findall(r"class htb a11e:(\d+) .*\n\s*Sent (\d+) bytes", printed)
        return {name: int(number) for name, number in found}


@pytest.fixture(scope="module")
def machines():
    made = Guarded()
    yield made
    if not KEEP:
        made.beyond.down()
        made.down()


def test_10_the_peer_gets_in_and_the_outsider_does_not(machines):
    assert sorted(machines.seen_outside()) == ["22", str(PORT)]
    assert machines.role("firewall", **OPEN) > 0
    assert machines.role("firewall", **OPEN) == 0
    assert machines.seen_outside() == ["22"]
    assert sorted(machines.seen_by_peer()) == ["22", str(PORT)]


def test_20_while_the_machine_boots_the_outsider_does_not_either(machines):
    place = "--property=StandardInput=file:/root/ask.py --property=StandardOutput=file:/root/seen"
    machines.beyond.on(machines.outsider, f"systemd-run --quiet --unit=watch {place} python3 {machines.asking(HOUR)}")
    machines.boots(machines.node, "systemctl reboot")
    assert sorted(machines.seen_by_peer()) == ["22", str(PORT)]
    assert machines.beyond.on(
        machines.outsider, "systemctl is-active watch; systemctl stop watch; cat /root/seen"
    ).split() == ["active", "22"]
    firewall, network = (
        int(machines.on(machines.node, UP + unit)) for unit in ("allreduce-firewall", "systemd-networkd")
    )
    assert firewall < network
    assert machines.role("firewall", **OPEN) == 0


def test_30_the_link_is_shaped_after_a_boot_and_when_its_driver_is_loaded_again(machines, tmp_path):
    before = machines.classes()
    assert machines.role("qos", **SHAPED) > 0
    assert machines.role("qos", **SHAPED) == 0
    shaped = machines.classes()
    assert sum("class htb a11e:" in line for line in shaped) == 3, shaped
    assert sum(line.startswith("qdisc fq_codel") for line in shaped) == 2, shaped
    machines.boots(machines.node, "systemctl reboot")
    assert machines.classes() == shaped
    index = f"cat /sys/class/net/{machines.link}/ifindex"
    first = machines.on(machines.node, index)
    machines.on(machines.node, RELOAD)
    deadline = time.monotonic() + 120
    while machines.on(machines.node, index, check=False) in ("", first):
        assert time.monotonic() < deadline
    assert machines.classes() == shaped
    # Rules and shares are judged by the addresses of all nodes.
    checks = machines.checked(machines.node, tmp_path, "all", **SHAPED, **OPEN)
    found = {name: status for name, (status, _said) in checks.items() if name.startswith(("qos_", "firewall_"))}
    assert {"qos_shares", "firewall_rules"} <= set(found) and set(found.values()) == {"passed"}, str(found)
    training_keeps_its_share(machines)
    assert machines.role("qos") > 0
    assert machines.classes() == before


def training_keeps_its_share(machines):
    """Of what the link carries while four streams of each want all of it: an emulator's timers are late, so there is less than its rate."""
    for name, port in (("bulk", BULK), ("training", TRAINING)):
        machines.on(machines.peer, SERVE.format(port))
        words = f"iperf3 -c {machines.machine(machines.peer).address} -p {port} -t 90 -P 4"
        machines.on(machines.node, f"systemd-run --quiet --collect --unit={name} {words}")
    time.sleep(10)
    first, began = machines.carried(), time.monotonic()
    time.sleep(20)
    last, seconds = machines.carried(), time.monotonic() - began
    machines.on(machines.node, "systemctl stop bulk training")
    training, all_of_it = (last[name] - first[name] for name in ("10", "1"))
    assert 0.95 * GUARANTEE <= training / all_of_it * RATE <= 0.95 * RATE, (first, last)
    assert 0.5 * RATE <= 8 * all_of_it / seconds <= 1.05 * RATE, (first, last, seconds)


def test_40_removal_lets_the_outsider_in_again(machines):
    assert machines.role("firewall") > 0
    assert sorted(machines.seen_outside()) == ["22", str(PORT)]
