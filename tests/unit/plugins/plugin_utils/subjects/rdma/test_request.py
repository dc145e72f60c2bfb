# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user asks of role rdma, and what is refused before a node is contacted."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.request import (
    DEFAULTS,
    Roce,
    problems,
    request,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe

GUID = "b8ce:f603:0077:8ab4"
FABRIC = {"dscp": 26, "priority": 3}
WHOLE = {**FABRIC, "pfc": [3], "ets": {0: 50, 3: 50, 6: "strict"}, "cnp": {"dscp": 48, "priority": 6}}


def test_nothing_is_asked_for_by_default():
    assert not request({}).present and request({}).roce is None


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
        ({"rdma_roce": {**FABRIC, "ets": {0: 50, 3: 50, 9: "strict"}}}, "rdma_no_ets"),
        ({"rdma_roce": {**FABRIC, "ets": {0: 50, 3: "half"}}}, "rdma_no_ets"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant(variables, code):
    found = list(problems(variables))
    assert [one.code for one in found] == ([code] if code else [])
    assert all(describe(one).endswith(".") for one in found)
