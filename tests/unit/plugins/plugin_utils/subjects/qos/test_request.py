# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables as a value, and what of them cannot be meant."""

import ipaddress

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.rates import Share, parse_share
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.request import (
    DEFAULTS,
    Request,
    distinct,
    link_problems,
    problems,
    request,
    share_problems,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from hypothesis import given
from hypothesis import strategies as st

ADDRESSES = {name: {"gpu_cluster_address": f"10.0.0.{number}"} for number, name in enumerate(("a", "b", "c"), 1)}
GIGABIT = 10**9


def test_peers_are_all_others_whatever_the_limit():
    found = request("a", {**ADDRESSES, "b": {}}, ["a", "b", "c"])
    assert (found.address, found.peers, found.unknown) == ("10.0.0.1", ("10.0.0.3",), ("b",))
    more = {**ADDRESSES, "a": {**ADDRESSES["a"], "qos_extra_peers": ["10.0.0.0/24", "fd00::7"]}}
    assert request("a", more, ["a", "b", "c"]).peers == ("10.0.0.0/24", "fd00::7")


def test_values_as_ansible_takes_them():
    mine = {
        **ADDRESSES["a"], "qos_state": "present", "qos_interfaces": "eth0,eth1", "qos_rate": "10Gbit", "qos_guarantee": "6gbit",
        "qos_ports": [29500, "50000-50999"], "qos_dscp": ["46", 26], "qos_cgroups": "/training.slice/", "qos_ingress": "true",
    }  # fmt: skip
    found = request("a", {"a": mine}, ["a"])
    assert (found.interfaces, found.rate, found.ingress) == (("eth0", "eth1"), 10 * GIGABIT, True)
    assert (found.guarantee.of(10 * GIGABIT), found.ceiling.of(10 * GIGABIT)) == (6 * GIGABIT, 10 * GIGABIT)
    assert found.ports == ((29500, 29500), (50000, 50999)) and found.dscp == (26, 46)
    assert found.cgroups == ("training.slice",)
    assert request("a", {"a": {"qos_ingress": "false"}}, ["a"]).ingress is False


@pytest.mark.parametrize(
    ("value", "share"),
    [
        ("80%", Share(part=0.8)), ("100%", Share(part=1.0)), ("12.5 %", Share(part=0.125)), ("8gbit", Share(rate=8 * GIGABIT)),
        (10**9, Share(rate=GIGABIT)),
        ("0%", None), ("101%", None), ("80", Share(rate=80)), ("0", None), ("much", None), ("", None),
    ],
)  # fmt: skip
def test_shares(value, share):
    assert parse_share(value) == share


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (DEFAULTS, []),
        ({"qos_rate": "25gbit"}, []),
        ({"qos_cgroups": ["/training.slice/"]}, []),
        ({"qos_rate": "25001mbit"}, ["qos_too_fast"]),
        ({"qos_rate": "100gbit"}, ["qos_too_fast"]),
        ({"qos_rate": "fast"}, ["qos_no_rate"]),
        ({"qos_rate": "80%"}, ["qos_no_rate"]),
        ({"qos_guarantee": "120%", "qos_ceiling": "x"}, ["qos_no_share", "qos_no_share"]),
        ({"qos_ports": [0, "70000", "9-8", "a", 22]}, ["qos_no_port"] * 4),
        ({"qos_dscp": [64, "af31", 0, 63]}, ["qos_no_dscp"] * 2),
        ({"qos_extra_peers": ["head", "10.0.0.1/24", "127.0.0.1", "10.0.0.0/8"]}, ["qos_no_address"] * 3),
        ({"qos_cgroups": ["a b", "../x", 'a"; drop', "training.slice/job_1"]}, ["qos_no_cgroup_name"] * 3),
        ({"qos_interfaces": ["eth0", "a b", 'x"', "far_too_long_a_name"]}, ["qos_no_interface_name"] * 3),
    ],
)
def test_what_cannot_be_meant(variables, expected):
    found = list(problems(variables))
    assert [one.code for one in found] == expected
    assert all(describe(one).endswith(".") for one in found)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({}, []),
        ({"guarantee": Share(rate=9 * GIGABIT), "ceiling": Share(rate=8 * GIGABIT)}, ["qos_share_too_large"]),
        ({"ceiling": Share(rate=11 * GIGABIT)}, ["qos_share_too_large"]),
        ({"guarantee": Share(part=1.0)}, ["qos_nothing_left"]),
        ({"default_ceiling": Share(part=0.1)}, ["qos_default_ceiling"]),
        ({"default_ceiling": Share(part=0.2)}, []),
        ({"default_ceiling": Share(rate=11 * GIGABIT)}, ["qos_default_ceiling"]),
    ],
)
def test_shares_fit_into_each_other(shares, expected):
    found = list(share_problems(Request(**shares), 10 * GIGABIT))
    assert [one.code for one in found] == expected
    assert all(describe(one).endswith(".") for one in found)


FACTS = {
    "interfaces": ["lo", "eth0", "bond0_7", "ib0"], "default_ipv4": {"interface": "eth0"},
    "eth0": {"speed": 100_000}, "bond0_7": {"speed": 10_000}, "ib0": {"speed": -1},
}  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ["qos_too_fast"]),
        ({"qos_rate": "10gbit"}, []),
        ({"qos_interfaces": ["bond0.7", "ib0"]}, []),
        ({"qos_interfaces": "eth7"}, ["qos_lacks_interface"]),
        ({"ansible_facts": {}}, []),
    ],
)
def test_what_facts_tell_before_anything_is_touched(variables, expected):
    found = list(link_problems("a", {"ansible_facts": FACTS, **variables}))
    assert [one.code for one in found] == expected
    assert all(describe(one).endswith(".") for one in found)


@given(st.lists(st.ip_addresses(v=4), max_size=8), st.lists(st.ip_addresses(v=6), max_size=4), st.integers(8, 32))
def test_no_address_is_lost_and_none_stands_twice(four, six, length):
    networks = [f"{one}/{length}" for one in four[:2]]
    found = [ipaddress.ip_network(one) for one in distinct([*map(str, four), *map(str, six), *networks])]
    for address in [*four, *six]:
        assert len([one for one in found if address.version == one.version and address in one]) == 1


def test_a_node_that_is_left_out_is_neither_peer_nor_unknown():
    found = request("a", {"a": ADDRESSES["a"], "c": ADDRESSES["c"]}, ["a", "b", "c"])
    assert (found.peers, found.unknown) == (("10.0.0.3",), ())


def test_what_is_not_set_is_the_links_own():
    found = request("a", ADDRESSES, ["a"])
    assert found == Request(address="10.0.0.1")
    assert [found.guarantee.of(10), found.ceiling.of(10), found.default_ceiling.of(10)] == [8, 10, 10]


@pytest.mark.parametrize(
    ("name", "attribute"),
    [("qos_guarantee", "guarantee"), ("qos_ceiling", "ceiling"), ("qos_default_ceiling", "default_ceiling")],
)
def test_each_share_is_its_own(name, attribute):
    found = request("a", {"a": {name: "7gbit"}}, ["a"])
    assert getattr(found, attribute) == Share(rate=7 * GIGABIT)


def test_each_value_stands_once_in_order():
    mine = {
        "qos_ports": ["90-99", 80, "80"],
        "qos_dscp": [46, "26", 46],
        "qos_interfaces": "b,a,b",
        "qos_cgroups": ["/x/", "x", "a"],
    }
    found = request("a", {"a": mine}, ["a"])
    assert (found.ports, found.dscp) == (((80, 80), (90, 99)), (26, 46))
    assert (found.interfaces, found.cgroups) == (("b", "a"), ("x", "a"))


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"qos_rate": "fast"}, "qos_rate is 'fast'; write a rate as tc takes it, such as 10gbit or 800mbit."),
        ({"qos_rate": "100gbit"}, (
            "qos_rate is 100gbit, and HTB, which takes one lock for every packet, costs too much above 25gbit; set qos_rate to at most "
            "25gbit, name a slower interface in qos_interfaces, or leave shares to the adapter's queues (mqprio, ETS)."
        )),
        ({"qos_ceiling": 0}, "qos_ceiling is '0'; write a rate as tc takes it, such as 8gbit, or a part of the link such as 80%."),
        ({"qos_ports": ["a"]}, "qos_ports has a; write a port from 1 to 65535 or a range such as '50000-50999'."),
        ({"qos_dscp": [64]}, "qos_dscp has 64; write a number from 0 to 63."),
        ({"qos_dscp": ["063"]}, "qos_dscp has 063; write a number from 0 to 63."),
        ({"qos_extra_peers": ["head"]}, "qos_extra_peers has head; write an IP address or a network such as 10.0.0.0/24."),
        ({"qos_cgroups": ["a/../b"]}, "qos_cgroups has a/../b; write a path below /sys/fs/cgroup such as training.slice."),
        ({"qos_interfaces": ["x#"]}, "qos_interfaces has 'x#', which is not the name of an interface; correct it."),
    ],
)  # fmt: skip
def test_each_is_one_sentence(variables, sentence):
    assert [describe(one) for one in problems(variables)] == [sentence]


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("a" * 15, True), ("a" * 16, False), ("X", True), ("", False), (".", False), ("..", False), ("a.b", True),
        *((f"a{one}b", False) for one in "/:\"'\\ \t\n*#"),
    ],
)  # fmt: skip
def test_names_of_interfaces(name, fits):
    found = list(problems({"qos_interfaces": [name]}))
    assert [(one.code, one.subject) for one in found] == ([] if fits else [("qos_no_interface_name", name)])


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ({"guarantee": Share(rate=9 * GIGABIT), "ceiling": Share(rate=8 * GIGABIT)}, (
            "The guarantee is 9gbit, the ceiling 8gbit and the link 10gbit; set qos_guarantee to at most qos_ceiling, and qos_ceiling to at "
            "most the link."
        )),
        ({"guarantee": Share(rate=9901 * 10**6)}, (
            "The guarantee is 9901mbit of 10gbit, which leaves nothing for other traffic; set qos_guarantee to at most 99%."
        )),
        ({"default_ceiling": Share(rate=GIGABIT)}, (
            "qos_default_ceiling is 1gbit; set it between 2gbit, which training always leaves, and 10gbit."
        )),
        ({"guarantee": Share(rate=9900 * 10**6)}, None),
        ({"guarantee": Share(rate=8 * GIGABIT), "ceiling": Share(rate=8 * GIGABIT)}, None),
        ({"default_ceiling": Share(rate=2 * GIGABIT)}, None),
    ],
)  # fmt: skip
def test_shares_that_do_not_fit_are_one_sentence(shares, sentence):
    found = [describe(one) for one in share_problems(Request(**shares), 10 * GIGABIT)]
    assert found == ([sentence] if sentence else [])


@pytest.mark.parametrize(
    ("variables", "sentences"),
    [
        ({}, [
            "eth0 of a is 100gbit, and HTB, which takes one lock for every packet, costs too much above 25gbit; set qos_rate to at most 25gbit, "
            "name a slower interface in qos_interfaces, or leave shares to the adapter's queues (mqprio, ETS).",
        ]),
        ({"qos_interfaces": ["eth7", "eth8"]}, [
            "qos_interfaces has eth7, which is missing on a; choose from bond0_7, eth0, ib0, lo.",
            "qos_interfaces has eth8, which is missing on a; choose from bond0_7, eth0, ib0, lo.",
        ]),
        ({"ansible_facts": {"interfaces": ["eth0"], "eth0": {"speed": 100_000}}}, []),
        ({"ansible_facts": {"eth0": {"speed": 100_000}}, "qos_interfaces": ["eth0"]}, [
            "eth0 of a is 100gbit, and HTB, which takes one lock for every packet, costs too much above 25gbit; set qos_rate to at most 25gbit, "
            "name a slower interface in qos_interfaces, or leave shares to the adapter's queues (mqprio, ETS).",
        ]),
        ({"ansible_facts": {**FACTS, "eth0": {"speed": "100000"}}}, []),
        ({"ansible_facts": {**FACTS, "eth0": {}}}, []),
    ],
)  # fmt: skip
def test_what_facts_tell_is_one_sentence_each(variables, sentences):
    assert [describe(one) for one in link_problems("a", {"ansible_facts": FACTS, **variables})] == sentences
