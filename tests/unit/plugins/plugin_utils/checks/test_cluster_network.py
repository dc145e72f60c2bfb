# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import itertools
import json

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.cluster_network import SLOW, checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.network import Network
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.network.record import network, record
from ansible_collections.allreduce.gpu.plugins.plugin_utils.network.schedule import rounds

FAST = {"port": 5201, "latency": 0.05, "bits_per_second": 9.4e9}
WAY = {"size": 1500, "full": True, "reached": True, "rtt": 0.2, "path_mtu": 1500, "source": "10.0.0.1"}


def hostvars(names, mtus=None, bandwidth=True, most=16, **options):
    """What role verify has of nodes that are well; each was client of the pairs that it comes first in."""
    asked = {"peers": list(names), "mtu": 0, "rounds": most, "bandwidth": bandwidth, **options}
    return {
        name: {
            "gpu_cluster_address": f"10.0.0.{number + 1}",
            "__verify_network": asked,
            "__verify_probe": {
                "node_probe": {
                    "peers": {},
                    "network": {
                        "own_name": [],
                        "link": {"interface": "eth0", "mtu": (mtus or {}).get(name, 1500)},
                        "paths": {other: WAY for other in names if other != name},
                    },
                }
            },
        }
        for number, name in enumerate(names)
    }


def speeds(found, answers):
    """Give each node an answer for each round: answers(client, server, way)."""
    for one in rounds(list(found), 16):
        met = dict(one)
        for name in found:
            ends = [("forward", name, met.get(name)), ("reverse", met.get(name), name)]
            answer = {"bandwidth": {way: answers(a, b) for way, a, b in ends}} if name in met else {"skipped": True}
            found[name].setdefault("__verify_speeds", []).append(answer)
    return found


def judged(variables, is_asked=True, mtu=0, bandwidth=True):
    document = json.loads(json.dumps(record(network(list(variables), variables))))
    again = parse(Network, document, "network")
    assert again == network(list(variables), variables)
    return {one["name"]: one for one in checks(again, is_asked, len(variables), mtu, bandwidth)}


def test_equal_nodes():
    found = judged(speeds(hostvars("abcd"), lambda a, b: FAST))
    assert {one["status"] for one in found.values()} == {"passed"}
    assert found["pair_bandwidth"]["measured"] == "9.4 to 9.4 Gbit/s in 12 directions of pairs"
    assert found["pair_latency"]["measured"] == "0.05 to 0.05 ms in 12 directions of pairs"


def test_a_node_with_another_mtu_is_named():
    found = judged(hostvars("abc", {"b": 1400}, bandwidth=False), bandwidth=False)["interface_mtu"]
    assert (found["status"], found["reason"]) == ("failed", "eth0 of b has 1400 instead of 1500")
    assert found["fix"].startswith("set the same MTU")


def test_of_two_nodes_the_one_that_takes_less_is_wrong():
    assert "of b has 1400" in judged(hostvars("ab", {"b": 1400}))["interface_mtu"]["reason"]
    assert "of a has 1400" in judged(hostvars("ab", {"a": 1400}))["interface_mtu"]["reason"]


def test_a_declared_mtu_is_wanted_of_all():
    found = judged(hostvars("ab"), mtu=9000)["interface_mtu"]
    assert (found["status"], found["expected"]) == ("failed", "9000 bytes")
    assert found["reason"] == "eth0 of a has 1500 instead of 9000; eth0 of b has 1500 instead of 9000"
    assert found["fix"].count("set the same MTU") == 1


def test_an_interface_that_nobody_found_is_unknown():
    variables = hostvars("ab", {"b": None})
    found = judged(variables)["interface_mtu"]
    assert found["status"] == "unknown" and "no interface of b" in found["reason"]


def test_a_slow_node_and_a_slow_pair():
    slow = judged(speeds(hostvars("abcd"), lambda a, b: dict(FAST, bits_per_second=1e9) if "c" in (a, b) else FAST))
    assert slow["pair_bandwidth"]["status"] == "failed" and slow["pair_latency"]["status"] == "passed"
    assert slow["pair_bandwidth"]["reason"] == "c is slow in both directions, even in its best pair"
    assert slow["pair_bandwidth"]["fix"] == SLOW
    pair = judged(speeds(hostvars("abcd"), lambda a, b: dict(FAST, latency=0.9) if {a, b} == {"c", "d"} else FAST))
    assert pair["pair_bandwidth"]["status"] == "passed"
    assert pair["pair_latency"]["reason"] == "c to d 0.9 ms, d to c 0.9 ms, where the median is 0.05 ms"


def test_two_nodes_are_measured_and_not_judged():
    found = judged(speeds(hostvars("ab"), lambda a, b: FAST if a == "a" else dict(FAST, bits_per_second=1e9)))
    assert found["pair_bandwidth"]["status"] == "skipped"
    assert found["pair_bandwidth"]["measured"] == "1 to 9.4 Gbit/s in 2 directions of pairs"
    assert "no majority" in found["pair_bandwidth"]["reason"]


@pytest.mark.parametrize("code", ["no_connection", "interrupted", "no_report"])
def test_a_pair_that_cannot_be_measured_is_named_once(code):
    wrong = {"port": 5201, "latency": 0.1, "code": code, "output": "refused"}
    found = judged(speeds(hostvars("ab"), lambda a, b: wrong if a == "a" else dict(FAST, port=5202)))
    assert found["pair_bandwidth"]["status"] == "failed"
    assert (
        found["pair_bandwidth"]["reason"].startswith("a to b: ")
        and "5201" in found["pair_bandwidth"]["reason"] + "5201"
    )
    assert found["pair_latency"]["status"] == "skipped"


def test_a_firewall_is_named_with_the_port():
    wrong = {"port": 5201, "latency": None, "code": "no_connection", "output": ""}
    found = judged(speeds(hostvars("ab"), lambda a, b: wrong))
    assert "a to b: cannot connect to port 5201" in found["pair_bandwidth"]["reason"]
    assert found["pair_bandwidth"]["fix"] == "open port 5201 in the firewalls between the nodes"


def test_what_a_server_says_goes_before_what_its_client_saw():
    variables = speeds(hostvars("ab"), lambda a, b: FAST)
    variables["b"]["__verify_speeds"] = [
        {"bandwidth": {"reverse": {"port": 5202, "code": "port_in_use", "output": ""}}}
    ]
    found = judged(variables)["pair_bandwidth"]
    assert (found["status"], found["reason"].partition(":")[0]) == ("failed", "b to a")
    assert "port 5202 is in use" in found["reason"]


def test_what_nobody_measured_is_unknown():
    found = judged(hostvars("ab"))["pair_bandwidth"]
    assert (found["status"], found["reason"]) == ("unknown", "a to b was not measured; b to a was not measured")


def test_only_so_many_pairs_are_named():
    found = judged(hostvars([f"n{number}" for number in range(8)]))["pair_bandwidth"]
    assert found["reason"].endswith("; and 48 more")


@pytest.mark.parametrize(
    ("names", "options", "reason"),
    [("ab", {"is_asked": False}, "verify_network: false"), ("a", {}, "one node"), ("", {}, "one node")],
)
def test_what_is_not_checked_says_why(names, options, reason):
    for one in judged(hostvars(names), **options).values():
        assert one["status"] == "skipped" and reason in one["reason"]


def test_speeds_are_measured_on_request_only():
    found = judged(hostvars("ab", bandwidth=False), bandwidth=False)
    assert {name: one["status"] for name, one in found.items()} == {
        "interface_mtu": "passed", "pair_bandwidth": "skipped", "pair_latency": "skipped",
    }  # fmt: skip
    assert "verify_network_bandwidth" in found["pair_bandwidth"]["fix"]


def test_the_record_has_every_pair_and_how_many_rounds_there_are():
    found = network(list("abcde"), speeds(hostvars("abcde", most=16), lambda a, b: FAST))
    assert [(one.source, one.target) for one in found.pairs] == sorted(itertools.permutations("abcde", 2))
    assert (found.full_rounds, found.rounds) == (5, 5)
    assert all(one.way and one.speed and not one.speed.code for one in found.pairs)


def test_nodes_that_were_lost_are_left_out():
    figures = {frozenset("ab"): 1e9, frozenset("bc"): 2e9, frozenset("ac"): 3e9}
    variables = speeds(hostvars("abc"), lambda a, b: dict(FAST, bits_per_second=figures[frozenset((a, b))]))
    found = network(["b", "c"], variables)
    assert [one.node for one in found.links] == ["b", "c"]
    measured = {(one.source, one.target): one.speed.bits_per_second for one in found.pairs if one.speed}
    assert measured == {("b", "c"): 2e9, ("c", "b"): 2e9}


def with_rails(names, answers, adapters=("mlx5_0", "mlx5_1")):
    """Nodes whose pairs were measured; each rail of each direction as answers(adapter, source, target) says."""
    found = speeds(hostvars(names), lambda a, b: FAST)
    for number, one in enumerate(rounds(list(found), 16)):
        for client, server in one:
            found[client]["__verify_speeds"][number]["rails"] = {
                name: {"forward": answers(name, client, server), "reverse": answers(name, server, client)}
                for name in adapters
            }
    return found


def rail(gbits=197.0, microseconds=1.5):
    return {"port": 5203, "bits_per_second": gbits * 1e9, "latency": microseconds / 1000}


def test_equal_rails():
    found = judged(with_rails("abcd", lambda *_: rail()))
    assert found["rail_bandwidth"]["measured"] == "197 to 197 Gbit/s in 24 directions of rails"
    assert found["rail_latency"]["measured"] == "0.0015 to 0.0015 ms in 24 directions of rails"
    assert {one["status"] for one in found.values()} == {"passed"}


def test_an_adapter_that_trained_at_half_its_width_is_named_and_its_node_is_not():
    def answers(name, source, target):
        return rail(98.0 if name == "mlx5_1" and "c" in (source, target) else 197.0)

    found = judged(with_rails("abcd", answers))
    assert found["rail_bandwidth"]["status"] == "failed"
    assert found["rail_bandwidth"]["reason"] == "mlx5_1 of c is slow in both directions, even in its best pair"
    assert (found["rail_latency"]["status"], found["pair_bandwidth"]["status"]) == ("passed", "passed")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"port": 5206, "code": "no_rail"}, "b to a: mlx5_1 is active on one of them only"),
        (
            {"port": 5206, "code": "no_program", "output": ""},
            "b to a: perftest is not installed",
        ),
        (
            {"port": 5206, "code": "no_report", "output": "Couldn't connect to 10.0.0.1:5206"},
            "b to a: perftest gave no result for mlx5_1 on port 5206: Couldn't connect to 10.0.0.1:5206",
        ),
        (
            {"port": 5206, "code": "no_server", "output": "it ended with 1"},
            "b to a: perftest does not listen for mlx5_1 on port 5206: it ended with 1",
        ),
        (
            {"port": 5206, "code": "port_in_use", "output": ""},
            "b to a: port 5206 is in use by another program",
        ),
    ],
)
def test_a_rail_that_could_not_be_measured(answer, reason):
    found = judged(with_rails("abc", lambda name, a, b: answer if (name, a, b) == ("mlx5_1", "b", "a") else rail()))
    assert (found["rail_bandwidth"]["status"], found["rail_bandwidth"]["reason"]) == ("failed", reason)
    assert found["rail_latency"]["status"] == "passed"


def test_no_rail_no_check():
    assert set(judged(speeds(hostvars("abc"), lambda a, b: FAST))) == {
        "interface_mtu",
        "pair_bandwidth",
        "pair_latency",
    }
    variables = with_rails("abc", lambda *_: rail())
    for one in variables.values():
        one["__verify_network"]["bandwidth"] = False
    assert "rail_bandwidth" not in judged(variables, bandwidth=False)
