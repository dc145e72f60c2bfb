# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the network between two hosts: verify finds each, names it and leaves nothing behind."""

import json
import time

import pytest
from cluster import KEEP, Cluster

pytestmark = pytest.mark.lab

OURS = {"own_name", "interface_ambiguity", "reachability", "path_mtu", "clock_offset", "name_resolution"}
CLUSTERS = {"interface_mtu", "pair_bandwidth", "pair_latency"}
NFT = "nft add table inet fault && nft add chain inet fault in '{ type filter hook input priority 0; }' && nft add rule inet fault in"
MEASURE = {"verify_network_bandwidth": True, "verify_network_seconds": 1}


class Pair:
    """Two hosts that have nothing but SSH among each other: other checks fail, those of the network are looked at."""

    def __init__(self, place):
        self.cluster = Cluster("network", 2, "--distribution", "debian12")
        self.first, self.second = self.cluster.hosts
        self.place = place
        run = self.cluster.play("tests/scenarios/network.yml")
        assert run.status == 0, run.output[-6000:]
        # The faults are made with it.
        self.on(self.second, "apt-get update -qq && apt-get install -qq -y nftables")
        self.interface = self.on(self.first, "ip -o route get 192.0.2.1 | sed 's/.* dev \\([^ ]*\\).*/\\1/'").strip()

    def on(self, host, command):
        return self.cluster.on(host, command)

    def verify(self, *options, installs=0, **variables):
        """verify.json of one run: the document, and {node: {name: check}} of the network."""
        given = {"report_directory": str(self.place), "verify_collectives": False, **variables}
        (self.place / "verify.json").unlink(missing_ok=True)
        self.run = self.cluster.play("playbooks/verify.yml", "-e", json.dumps(given), *options)
        assert (self.place / "verify.json").exists(), self.run.output[-6000:]
        # The first host also stands for the controller, where the directory of the report is made.
        assert self.run.recap[self.second]["changed"] == installs, self.run.output[-6000:]
        document = json.loads((self.place / "verify.json").read_text(encoding="utf-8"))
        found = {name: node["checks"] for name, node in document["nodes"].items()}
        found["cluster"] = document["cluster_checks"]
        return document, {
            node: {one["name"]: one for one in checks if one["category"] == "network"} for node, checks in found.items()
        }

    def failed(self, **variables):
        """[(node, check)] that failed, of those that look at the way between nodes, and all of them by these."""
        checks = self.verify(**variables)[1]
        ours = OURS | CLUSTERS
        every = {(node, name): one for node, found in checks.items() for name, one in found.items() if name in ours}
        return {place for place, one in every.items() if one["status"] == "failed"}, every


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    made = Pair(tmp_path_factory.mktemp("network"))
    yield made
    if not KEEP:
        made.cluster.down()


def test_two_sound_hosts(pair):
    document, checks = pair.verify()
    for host in pair.cluster.hosts:
        statuses = {name: checks[host][name]["status"] for name in OURS}
        assert statuses == dict.fromkeys(OURS, "passed"), checks[host]
    assert {name: one["status"] for name, one in checks["cluster"].items()} == {
        "interface_mtu": "passed", "pair_bandwidth": "skipped", "pair_latency": "skipped",
    }  # fmt: skip
    network = document["network"]
    assert {(one["source"], one["target"]) for one in network["pairs"]} == {
        (pair.first, pair.second), (pair.second, pair.first),
    }  # fmt: skip
    assert {one["link"]["interface"] for one in network["links"]} == {pair.interface}
    for host in pair.cluster.hosts:
        assert "iperf3" not in pair.on(host, "ls /usr/bin"), "speeds were not asked for"


def test_a_smaller_mtu_is_found_and_named(pair):
    before = pair.on(pair.second, f"cat /sys/class/net/{pair.interface}/mtu").strip()
    pair.on(pair.second, f"ip link set {pair.interface} mtu 1280")
    failed, checks = pair.failed()
    pair.on(pair.second, f"ip link set {pair.interface} mtu {before}")
    assert failed == {(pair.first, "path_mtu"), ("cluster", "interface_mtu")}
    assert f"{pair.second} gets no packet of {before} bytes" in checks[pair.first, "path_mtu"]["reason"]
    assert f"of {pair.second} has 1280 instead of {before}" in checks["cluster", "interface_mtu"]["reason"]


def test_a_wrong_name_is_found_and_named(pair):
    """Once for the node itself, as installers write it, and once for another one."""
    pair.on(pair.first, f"cp /etc/hosts /root/hosts && echo 127.0.1.1 {pair.first} >> /etc/hosts")
    pair.on(
        pair.second,
        f"cp /etc/hosts /root/hosts && sed 's/^.*{pair.first}.*$/192.0.2.7 {pair.first}/' /root/hosts > /etc/hosts",
    )
    failed, checks = pair.failed()
    for host in pair.cluster.hosts:
        pair.on(host, "cat /root/hosts > /etc/hosts")
    assert {(pair.first, "own_name"), (pair.second, "name_resolution")} <= failed
    assert (pair.second, "own_name") not in failed and (pair.first, "name_resolution") not in failed
    assert f"{pair.first} leads to" in checks[pair.first, "own_name"]["reason"]
    assert f"{pair.first} resolves to 192.0.2.7" in checks[pair.second, "name_resolution"]["reason"]


def test_a_dropped_ping_is_found_and_named(pair):
    pair.on(pair.second, f"{NFT} icmp type echo-request drop")
    failed, checks = pair.failed()
    pair.on(pair.second, "nft delete table inet fault")
    assert failed == {(pair.first, "reachability")}
    assert f"{pair.second} does not answer ping" in checks[pair.first, "reachability"]["reason"]
    assert checks[pair.first, "path_mtu"]["status"] == "unknown"


def test_a_wrong_clock_is_found_on_both_of_two(pair):
    """Hosts of the lab have one clock: what the training user's date says is 20 s ahead."""
    wrapper = "#!/bin/sh\nexec /usr/bin/date -d '+20 seconds' \"$@\"\n"
    pair.on(pair.second, "cat > /usr/local/bin/date <<'EOS'\n" + wrapper + "EOS\nchmod 755 /usr/local/bin/date")
    failed, checks = pair.failed()
    pair.on(pair.second, "rm /usr/local/bin/date")
    assert failed == {(pair.first, "clock_offset")}
    assert f"the clock of {pair.second} is " in checks[pair.first, "clock_offset"]["reason"]
    assert "s ahead" in checks[pair.first, "clock_offset"]["reason"]


def test_bandwidth_on_request(pair):
    document, checks = pair.verify(installs=1, **MEASURE)
    for way in document["network"]["pairs"]:
        assert way["speed"]["bits_per_second"] > 1e7 and 0 < way["speed"]["latency"] < 100, way
    for name in ("pair_bandwidth", "pair_latency"):
        assert checks["cluster"][name]["status"] == "skipped" and checks["cluster"][name]["measured"]
        assert "no majority" in checks["cluster"][name]["reason"]
    left = [pair.on(host, "ps -e -o args= | grep '^iperf3' || true") for host in pair.cluster.hosts]
    assert left == ["", ""], "servers are gone"


def test_a_firewall_between_them_is_named_with_its_port(pair):
    pair.on(pair.second, f"{NFT} tcp dport '{{ 5201, 5202 }}' drop")
    started = time.time()
    failed, checks = pair.failed(**MEASURE)
    took = time.time() - started
    pair.on(pair.second, "nft delete table inet fault")
    assert failed == {("cluster", "pair_bandwidth")}
    reason = checks["cluster", "pair_bandwidth"]["reason"]
    assert f"{pair.first} to {pair.second}: cannot connect to port 5201" in reason
    assert f"{pair.second} to {pair.first}: cannot connect to port 5202" in reason
    assert took < 180, "and nobody waits for it"


def test_what_is_off_runs_nothing(pair):
    checks = pair.verify(verify_network=False)[1]
    for host in pair.cluster.hosts:
        for name in OURS - {"name_resolution"}:
            assert checks[host][name]["status"] == "skipped" and "verify_network: false" in checks[host][name]["reason"]
