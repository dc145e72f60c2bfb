# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bridges and adapters against what was asked for: each comparison whole."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.pcie import Device, PcieNode, Port
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.pcie.compare import (
    compare_pcie,
    compare_unmeasured,
    compare_unwanted,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.pcie.request import Request

UPPER, NIC, GPU = "0000:00:01.0", "0000:02:00.0", "0000:03:00.0"
NAMES = {NIC: "mlx5_0 (0000:02:00.0)"}
REDIRECT = 0x4 | 0x8 | 0x10  # P2P request redirect, completion redirect, upstream forwarding


def node(acs=0, read_request=4096):
    devices = (
        Device(address=GPU, kind="gpu", read_request=512),
        Device(address=NIC, kind="nic", read_request=read_request),
    )
    return PcieNode(devices=devices, bridges={UPPER: Port(readable=True, acs=acs)})


def acs(observed, status, remedy):
    return Comparison("pcie", UPPER, "no redirection", observed, status, remedy, "acs")


def read_request(observed, status, remedy):
    return Comparison("pcie", NAMES[NIC], "4096 bytes", observed, status, remedy, "read_request")


@pytest.mark.parametrize(
    ("wanted", "seen", "expected"),
    [
        ({}, {"acs": REDIRECT, "read_request": 512}, []),
        ({"clear_redirect": True}, {}, [acs("no redirection", Status.AS_PLANNED, Remedy.NONE)]),
        ({"clear_redirect": True}, {"acs": None}, [acs("no redirection", Status.AS_PLANNED, Remedy.NONE)]),
        ({"read_request": 4096}, {}, [read_request("4096 bytes", Status.AS_PLANNED, Remedy.NONE)]),
        ({"read_request": 4096}, {"read_request": 512}, [read_request("512 bytes", Status.DIFFERS, Remedy.APPLY)]),
        ({"read_request": 4096}, {"read_request": None}, [read_request("", Status.UNKNOWN, Remedy.MEASURE)]),
    ],
)
def test_what_is_compared(wanted, seen, expected):
    assert compare_pcie(Request(present=True, **wanted), node(**seen), [UPPER], NAMES) == expected


def test_a_bridge_that_redirects_is_told_with_its_bits():
    (found,) = compare_pcie(Request(present=True, clear_redirect=True), node(acs=REDIRECT), [UPPER], NAMES)
    assert found == acs(found.observed, Status.DIFFERS, Remedy.APPLY)
    assert "ReqRedir" in found.observed


def test_only_bridges_between_pairs_are_compared():
    assert compare_pcie(Request(present=True, clear_redirect=True), node(acs=REDIRECT), [], NAMES) == []


def test_a_node_that_was_not_examined():
    assert compare_unmeasured() == [
        Comparison("pcie", "PCIe", "as declared", "", Status.UNKNOWN, Remedy.MEASURE, "acs")
    ]


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [(False, []), (True, [Comparison("pcie", "PCIe", "as it was", "changed", Status.UNWANTED, Remedy.APPLY, "acs")])],
)
def test_a_node_that_nothing_is_asked_of(recorded, expected):
    assert compare_unwanted(recorded) == expected
