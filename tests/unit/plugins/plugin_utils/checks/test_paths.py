# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.paths import NAMES, checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.network import Probe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse

WAY = {"size": 1500, "full": True, "reached": True, "rtt": 0.2, "path_mtu": 1500, "source": "10.0.0.1"}
LINK = {"interface": "eth0", "mtu": 1500, "speed": None, "lower": {}, "shared": {}}
GOOD_ARP = {"arp_ignore": 1, "arp_announce": 2, "rp_filter": 2}
SAME = {"least": -0.2, "most": 0.1}


def probe(link=None, own_name=("10.0.0.1",), clock=None, **paths):
    ways = {name: {**WAY, **way} for name, way in paths.items()} or {"b": WAY, "c": WAY}
    return {
        "peers": {name: {"address": "10.0.0.9", "resolved": [], "ssh": None, "clock": clock or SAME} for name in ways},
        "network": {"own_name": list(own_name), "link": {**LINK, **(link or {})}, "paths": ways},
    }


def found(answer, is_asked=True, peers=2):
    return {one["name"]: one for one in checks("a", "10.0.0.1", parse(Probe, answer, "node_probe"), is_asked, peers)}


def statuses(answer, **more):
    return {name: one["status"] for name, one in found(answer, **more).items()}


def test_a_node_that_is_well():
    assert statuses(probe()) == dict.fromkeys(NAMES, "passed")


@pytest.mark.parametrize(
    ("answer", "name", "reason"),
    [
        (probe(own_name=[]), "own_name", "a resolves to nothing on the node itself instead of 10.0.0.1"),
        (probe(own_name=["127.0.1.1"]), "own_name", "a resolves to 127.0.1.1 on the node itself"),
        (probe(own_name=["10.0.0.1", "127.0.1.1"]), "own_name", "a resolves to 10.0.0.1, 127.0.1.1 on the node itself"),
        (probe(b={"reached": False, "full": False}, c={}), "reachability", "b does not answer ping"),
        (
            probe(b={"source": "10.0.5.1"}, c={}),
            "reachability",
            "packets to b leave from 10.0.5.1 instead of 10.0.0.1",
        ),
        (probe(b={"full": False}, c={}), "path_mtu", "b gets no packet of 1500 bytes"),
        (probe(b={"full": False, "path_mtu": 1400}, c={}), "path_mtu", "of 1500 bytes: the path carries 1400"),
        (
            probe({"mtu": 9000, "lower": {"ens1": 1500, "ens2": 9000}}),
            "path_mtu",
            "ens1 below eth0 carries 1500 bytes, eth0 sends 9000",
        ),
        (
            probe({"shared": {"eth0": GOOD_ARP, "eth1": {**GOOD_ARP, "arp_ignore": 0}}}),
            "interface_ambiguity",
            "eth1 has arp_ignore 0",
        ),
        (
            probe({"shared": {"eth0": {**GOOD_ARP, "rp_filter": 1}, "eth1": GOOD_ARP}}),
            "interface_ambiguity",
            "eth0 has rp_filter 1",
        ),
        (probe({"shared": {"eth0": GOOD_ARP, "eth1": {}}}), "interface_ambiguity", "arp_announce unset"),
        (
            probe({"interface": "lo"}),
            "interface_ambiguity",
            "the cluster address is on lo, on which no packet leaves the node",
        ),
        (probe(clock={"least": 19.6, "most": 20.1}), "clock_offset", "the clock of b is 19.6 to 20.1 s ahead"),
        (probe(clock={"least": -2.5, "most": -2.1}), "clock_offset", "the clock of b is 2.1 to 2.5 s behind"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_else_fails(answer, name, reason):
    assert [one for one, status in statuses(answer).items() if status != "passed"] == [name]
    assert found(answer)[name]["status"] == "failed"
    assert reason in found(answer)[name]["reason"] and found(answer)[name]["fix"]


def test_rails_that_are_kept_apart_may_share_a_subnet():
    assert statuses(probe({"shared": {"eth0": GOOD_ARP, "eth1": GOOD_ARP}}))["interface_ambiguity"] == "passed"


@pytest.mark.parametrize(
    ("clocks", "status"),
    [
        ([(-0.3, 0.1), (0.2, 0.6), (-0.9, -0.8)], "passed"),
        ([(1.2, 1.4), (-0.3, 0.1), (-0.1, 0.1)], "passed"),  # it is the other one that is wrong
        ([(1.2, 1.4), (1.3, 1.5), (-0.1, 0.1)], "failed"),
        ([(0.9, 1.4)], "passed"),  # nobody can tell
        ([(-16.0, 0.4)], "unknown"),
        ([], "unknown"),
    ],
)
def test_a_node_is_wrong_where_most_others_differ(clocks, status):
    answer = probe()
    answer["peers"] = {f"n{i}": {"clock": {"least": low, "most": high}} for i, (low, high) in enumerate(clocks)}
    assert statuses(answer)["clock_offset"] == status


def test_where_nobody_answers_no_size_is_judged():
    answer = probe(b={"reached": False, "full": False})
    assert (statuses(answer)["reachability"], statuses(answer)["path_mtu"]) == ("failed", "unknown")


@pytest.mark.parametrize(
    ("link", "reason"), [(LINK, "no ping on the node"), ({"interface": None}, "no interface has the cluster address")]
)
def test_what_could_not_be_tried_is_unknown(link, reason):
    answer = probe(link)
    answer["network"]["paths"] = None
    for name in ("reachability", "path_mtu"):
        assert found(answer)[name]["status"] == "unknown" and reason in found(answer)[name]["reason"]


@pytest.mark.parametrize(("is_asked", "peers", "reason"), [(False, 2, "verify_network: false"), (True, 0, "one node")])
def test_what_is_not_checked_says_why(is_asked, peers, reason):
    for one in found(probe(), is_asked=is_asked, peers=peers).values():
        assert one["status"] == "skipped" and reason in one["reason"]


def test_a_probe_that_did_not_run():
    assert set(statuses({}).values()) == {"unknown"}
