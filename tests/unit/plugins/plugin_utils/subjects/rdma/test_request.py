# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user asks of role rdma, and what is refused before a node is contacted."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.request import (
    DEFAULTS,
    Request,
    Roce,
    problems,
    request,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from hypothesis import given
from hypothesis import strategies as st

GUID = "b8ce:f603:0077:8ab4"
FABRIC = {"dscp": 26, "priority": 3}
WHOLE = {**FABRIC, "pfc": [3], "ets": {0: 50, 3: 50, 6: "strict"}, "cnp": {"dscp": 48, "priority": 6}}


def test_nothing_is_asked_for_by_default():
    assert request({}) == Request()


@pytest.mark.parametrize(
    ("variables", "attribute", "expected"),
    [
        ({"rdma_peermem": "never"}, "peermem", "never"),
        ({"rdma_gpudirect": "no"}, "gpudirect", False),
        ({"rdma_names": "pci"}, "names", "pci"),
        ({"rdma_fixed_names": {GUID.upper(): "compute0"}}, "fixed_names", {GUID: "compute0"}),
        ({"rdma_ipoib": {"ib0": {"mtu": 2044}}}, "ipoib", {"ib0": {"mtu": 2044}}),
        ({"rdma_interfaces": ["ens1"]}, "interfaces", ("ens1",)),
        ({"rdma_traffic_class": 106}, "traffic_class", "106"),
        ({"rdma_roce": {**FABRIC, "pfc": [5, "3", 3]}}, "roce", Roce(26, 3, (3, 5))),
        ({"rdma_roce": {**FABRIC, "cnp": {"dscp": 48}}}, "roce", Roce(26, 3, (3,), cnp_dscp=48)),
        ({"rdma_roce": {**FABRIC, "cnp": {"priority": 6}}}, "roce", Roce(26, 3, (3,), cnp_priority=6)),
    ],
)
def test_what_variables_mean(variables, attribute, expected):
    assert getattr(request(variables), attribute) == expected


NUMBERS = (
    st.integers(-1, 70)
    | st.integers(-1, 70).map(str)
    | st.integers(0, 70).map(hex)
    | st.sampled_from(["", " 3", "x", True, None, 2.5])
)
SHARES = st.dictionaries(
    st.integers(0, 8) | st.sampled_from(["0", "3", "0x3", "x"]),
    st.sampled_from([0, 50, "50", 100, "0x32", "strict", None]),
    max_size=3,
)


@given(
    NUMBERS,
    NUMBERS,
    st.lists(NUMBERS, max_size=2),
    SHARES,
    st.dictionaries(st.sampled_from(["dscp", "priority"]), NUMBERS),
)
def test_what_is_not_refused_can_be_read(dscp, priority, pfc, ets, cnp):
    variables = {"rdma_roce": {"dscp": dscp, "priority": priority, "pfc": pfc, "ets": ets, "cnp": cnp}}
    if not list(problems(variables)):
        roce = request(variables).roce
        assert 0 <= roce.dscp <= 63 and roce.priority in roce.pfc and set(roce.pfc) <= set(range(8))
        assert not roce.ets or sum(one for one in roce.ets.values() if one != "strict") == 100


def test_a_whole_fabric():
    texts = {
        "dscp": "26",
        "priority": "3",
        "pfc": ["3"],
        "ets": {"0": "50", "3": "50", "6": "strict"},
        "cnp": {"dscp": "48", "priority": "6"},
    }
    expected = Roce(26, 3, (3,), {0: 50, 3: 50, 6: "strict"}, 48, 6)
    assert request({"rdma_roce": WHOLE}).roce == request({"rdma_roce": texts}).roce == expected
    assert request({"rdma_roce": FABRIC}).roce == Roce(26, 3, (3,))


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({}, None),
        (DEFAULTS, None),
        ({"rdma_stack": "doca"}, "rdma_no_doca"),
        ({"rdma_fixed_names": {GUID: "compute0", GUID.upper(): "compute_1"}}, None),
        ({"rdma_fixed_names": {"mlx5_0": "compute0"}}, "rdma_no_fixed_name"),
        ({"rdma_fixed_names": {GUID: 'x", RUN+="/bin/sh'}}, "rdma_no_fixed_name"),
        ({"rdma_interfaces": ["ens1f0np0"]}, None),
        ({"rdma_interfaces": ["a b"]}, "rdma_no_interface_name"),
        ({"rdma_interfaces": ["../x"]}, "rdma_no_interface_name"),
        ({"rdma_traffic_class": "106"}, None),
        ({"rdma_traffic_class": "26*4"}, "rdma_no_traffic_class"),
        ({"rdma_ipoib": {"ib0": {"mode": "connected", "mtu": 65520}}}, None),
        ({"rdma_ipoib": {"ib0": {"mtu": 2044}}}, None),
        ({"rdma_ipoib": {"ib0": {"mode": "fast"}}}, "rdma_no_ipoib"),
        ({"rdma_ipoib": {"ib0": {"mtus": 2044}}}, "rdma_no_ipoib"),
        ({"rdma_ipoib": {"ib0": "connected"}}, "rdma_no_ipoib"),
        ({"rdma_ipoib": {"ib0": {"mode": "datagram", "mtu": 65520}}}, "rdma_no_mtu"),
        ({"rdma_ipoib": {"ib0": {"mode": "connected", "mtu": "big"}}}, "rdma_no_mtu"),
        ({"rdma_roce": WHOLE}, None),
        ({"rdma_roce": {**FABRIC, "mtu": 9000}}, "rdma_unknown_roce"),
        ({"rdma_roce": {"dscp": 26}}, "rdma_no_number"),
        ({"rdma_roce": {**FABRIC, "dscp": 64}}, "rdma_no_number"),
        ({"rdma_roce": {**FABRIC, "priority": True}}, "rdma_no_number"),
        ({"rdma_roce": {**FABRIC, "pfc": [3, 8]}}, "rdma_no_number"),
        ({"rdma_roce": {**FABRIC, "pfc": "3"}}, "rdma_no_number"),
        ({"rdma_roce": {**FABRIC, "cnp": {"dscp": 99}}}, "rdma_no_number"),
        ({"rdma_roce": {**FABRIC, "cnp": {"prio": 6}}}, "rdma_no_number"),
        ({"rdma_roce": {**FABRIC, "pfc": [4]}}, "rdma_lossy"),
        ({"rdma_roce": {**FABRIC, "ets": {0: 50, 3: 60}}}, "rdma_no_ets"),
        ({"rdma_roce": {**FABRIC, "ets": {0: 100}}}, "rdma_no_ets"),
        ({"rdma_roce": {**FABRIC, "ets": {3: 100}}}, "rdma_no_ets"),
        ({"rdma_roce": {**FABRIC, "ets": {0: 50, 3: 50, 8: "strict"}}}, "rdma_no_ets"),
        ({"rdma_roce": {**FABRIC, "ets": {0: 50, 3: "half"}}}, "rdma_no_ets"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant(variables, code):
    found = list(problems(variables))
    assert [one.code for one in found] == ([code] if code else [])
    assert all(describe(one).endswith(".") for one in found)


@pytest.mark.parametrize(
    ("variables", "sentences"),
    [
        ({"rdma_stack": "doca"}, [
            "rdma_stack is doca, whose repository's key cannot be verified from a public source; set it to inbox, or install DOCA-OFED "
            "yourself and set it to none.",
        ]),
        ({"rdma_fixed_names": {"mlx5_0": "compute0", GUID: "0x"}}, [
            "rdma_fixed_names has mlx5_0 with the name 'compute0'; write a GUID such as b8ce:f603:0077:8ab4 and a name of letters, digits and "
            "underscores.",
            f"rdma_fixed_names has {GUID} with the name '0x'; write a GUID such as b8ce:f603:0077:8ab4 and a name of letters, digits and "
            "underscores.",
        ]),
        ({"rdma_interfaces": ["a b", "ens1"]}, ["rdma_interfaces has 'a b', which is not the name of an interface; correct it."]),
        ({"rdma_traffic_class": 256}, ["rdma_traffic_class is '256'; set it to a number from 0 to 255, four times the DSCP."]),
        ({"rdma_traffic_class": "0xff"}, []),
        ({"rdma_ipoib": {"ib0": {"mode": "fast"}, "a b": {"mtu": 2044}}}, [
            'rdma_ipoib has ib0 with {"mode": "fast"}; set its mode to datagram or connected, and its mtu.',
            'rdma_ipoib has a b with {"mtu": 2044}; set its mode to datagram or connected, and its mtu.',
        ]),
        ({"rdma_ipoib": {"ib0": {"mode": "connected", "mtu": 65521}}}, [
            "rdma_ipoib gives ib0 the mtu 65521; in mode connected set it to 65520 at most.",
        ]),
        ({"rdma_ipoib": {"ib0": {"mtu": 4093}}}, ["rdma_ipoib gives ib0 the mtu 4093; in mode datagram set it to 4092 at most."]),
        ({"rdma_ipoib": {"ib0": {"mtu": 575}}}, ["rdma_ipoib gives ib0 the mtu 575; in mode datagram set it to 4092 at most."]),
        ({"rdma_ipoib": {"ib0": {"mtu": 576}, "ib1": {"mtu": 4092}, "ib2": {"mode": "datagram"}}}, []),
        ({"rdma_roce": {**FABRIC, "vlan": 1, "mtu": 9000}}, ["rdma_roce has mtu; choose from dscp, priority, pfc, ets, cnp."]),
        ({"rdma_roce": {"dscp": 64, "priority": 8, "pfc": [9], "cnp": {"dscp": 64, "priority": 8, "prio": 1}}}, [
            "rdma_roce has 64 for dscp; set it to a number from 0 to 63.",
            "rdma_roce has 8 for priority; set it to a number from 0 to 7.",
            "rdma_roce has 9 for pfc; set it to a number from 0 to 7.",
            "rdma_roce has 64 for cnp.dscp; set it to a number from 0 to 63.",
            "rdma_roce has 8 for cnp.priority; set it to a number from 0 to 7.",
            "rdma_roce has 1 for cnp.prio; set it to a number from 0 to 7.",
        ]),
        ({"rdma_roce": {"dscp": 63, "priority": 7, "pfc": [0, 7], "cnp": {"dscp": 0, "priority": 0}}}, []),
        ({"rdma_roce": {**FABRIC, "pfc": "3"}}, ["rdma_roce has '3' for pfc; set it to a number from 0 to 7."]),
        ({"rdma_roce": {**FABRIC, "pfc": 1}}, ["rdma_roce has 1 for pfc; set it to a number from 0 to 7."]),
        ({"rdma_roce": {**FABRIC, "cnp": 48, "ets": [50, 50]}}, [
            "rdma_roce has 48 for cnp; write a dictionary, such as {dscp: 48, priority: 6}.",
            "rdma_roce has [50, 50] for ets; write a dictionary, such as {0: 50, 3: 50}.",
        ]),
        ({"rdma_roce": {**FABRIC, "pfc": [4, 5]}}, [
            "rdma_roce gives training priority 3, which is not in pfc (4, 5); add it there, or leave pfc out.",
        ]),
        ({"rdma_roce": {**FABRIC, "ets": {0: 50, 3: 49}}}, [
            'rdma_roce has {"0": 50, "3": 49} for ets; give priorities 0 and 3 a percentage or strict each, with percentages that sum to 100.',
        ]),
        ({"rdma_roce": {**FABRIC, "ets": {0: 100, 3: "strict"}}}, []),
        ({"rdma_roce": {**FABRIC, "ets": {0: 0, 3: 100, 7: 0}}}, []),
        ({"rdma_roce": {**FABRIC, "pfc": [4], "ets": {0: 1}}}, [
            "rdma_roce gives training priority 3, which is not in pfc (4); add it there, or leave pfc out.",
            'rdma_roce has {"0": 1} for ets; give priorities 0 and 3 a percentage or strict each, with percentages that sum to 100.',
        ]),
    ],
)  # fmt: skip
def test_each_is_one_sentence(variables, sentences):
    assert [describe(one) for one in problems(variables)] == sentences
