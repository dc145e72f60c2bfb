# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU that is set up unlike most others of its model is named."""

import pytest
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.lab.nvml.fault import said


def told(examine, machine):
    return [
        (one["check"], one["gpu"], one["expected"], one["measured"], one["severity"])
        for one in examine(machine)["findings"]
    ]


@pytest.mark.parametrize(
    ("setting", "check", "expected", "measured"),
    [
        (("power_limit", "500000"), "peer_power_limit", "700 W", "500 W"),
        (("max_clocks", "1755 1755 2619"), "peer_clocks", "1980/1980/2619 MHz", "1755/1755/2619 MHz"),
        (("vbios", "96.00.61.00.01"), "peer_vbios", "96.00.00.00.01", "96.00.61.00.01"),
        (("inforom", "G520.0200.00.04"), "peer_inforom", "G520.0200.00.05", "G520.0200.00.04"),
        (("memory_mib", "65247"), "peer_memory", "80 GiB", "64 GiB"),
        (("mig", "1 1"), "peer_mig_mode", "off", "on"),
        (("ecc", "0 0"), "peer_ecc_mode", "on", "off"),
        (("compute_mode", "3"), "peer_compute_mode", "default", "exclusive_process"),
    ],
)
def test_the_one_that_differs_is_named(examine, setting, check, expected, measured):
    machine = said(machines.hgx_h100(), 3, setting)
    assert told(examine, machine) == [(check, "GPU3", expected, measured, "degraded")]


def test_without_a_majority_nobody_is_blamed(examine):
    two = said(machines.rtx_3090(), 0, ("power_limit", "300000"))
    four = said(said(machines.a40_pcie(), 0, ("power_limit", "200000")), 1, ("power_limit", "200000"))
    assert (told(examine, two), told(examine, four)) == ([], [])


def test_only_gpus_of_one_model_are_compared(examine):
    found = examine(machines.rtx_3090_3080())
    assert not [entry for entry in found["judged"] if entry["check"].startswith("peer_")]


def test_what_nvml_does_not_tell_is_not_compared(examine):
    machine = machines.hgx_h100()
    for number in range(8):
        machine = said(machine, number, ("vbios", "!3"))
    assert "peer_vbios" not in [entry["check"] for entry in examine(machine)["judged"]]
    assert told(examine, said(machines.hgx_h100(), 3, ("vbios", "!3"), ("max_clocks", "!3"))) == []


def test_a_display_or_ecc_changes_the_size_of_memory_and_is_no_fault_of_it(examine):
    assert told(examine, said(machines.a40_pcie(), 0, ("memory_mib", "46062"))) == []
    found = told(examine, said(machines.a40_pcie(), 0, ("memory_mib", "49140"), ("ecc", "0 0")))
    assert [one[0] for one in found] == ["peer_ecc_mode"]
