# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU that is set up unlike most others of its model is named."""

import pytest
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.lab.nvml.fault import all_said, said


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


def test_the_one_with_lower_application_clocks_is_named(examine):
    alike = all_said(machines.hgx_h100(), ("application_clocks", "2619 1980"))
    assert told(examine, alike) == []
    for value, measured in (("2619 1410", "1410/2619 MHz"), ("1593 1980", "1980/1593 MHz")):
        found = told(examine, said(alike, 3, ("application_clocks", value)))
        assert found == [("peer_application_clocks", "GPU3", "1980/2619 MHz", measured, "degraded")]
    # A driver that refuses the question, and one that no longer has it.
    assert [one[:2] + one[4:] for one in told(examine, said(alike, 3, ("application_clocks", "!4")))] == [
        ("peer_application_clocks", "GPU3", "unknown")
    ]
    assert told(examine, said(alike, 3, ("application_clocks", "!26"))) == []


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ((("pcie_max_generation", "3"),), [("pcie_generation", "generation 5", "generation 3")]),
        ((("pcie_max_width", "8"), ("pcie_width", "8")), [("pcie_width", "x16", "x8")]),
        ((("pcie_max_width", "8"), ("pcie_width", "4")), [("pcie_width", "x8", "x4"), ("pcie_width", "x16", "x8")]),
        # More than the others is no fault of it.
        ((("pcie_max_generation", "6"),), []),
        ((("pcie_max_generation", "!3"), ("pcie_max_width", "!3")), []),
    ],
)
def test_a_slot_that_has_less_than_the_others_is_named(examine, settings, found):
    machine = said(machines.hgx_h100(), 5, *settings)
    assert told(examine, machine) == [
        (check, "GPU5", expected, measured, "degraded") for check, expected, measured in found
    ]


def test_slots_without_a_majority_are_as_they_are(examine):
    two = said(machines.rtx_3090(), 0, ("pcie_max_width", "8"), ("pcie_width", "8"))
    halves = said(said(machines.a40_pcie(), 0, ("pcie_max_generation", "3")), 1, ("pcie_max_generation", "3"))
    assert (told(examine, two), told(examine, halves)) == ([], [])


def test_an_idle_gpu_that_is_much_warmer_is_named(examine):
    hgx = machines.hgx_h100()
    expected = ("peer_temperature", "GPU3", "at most 59 degrees", "79 degrees", "degraded")
    assert told(examine, said(hgx, 3, ("temperature", "79"))) == [expected]
    assert told(examine, said(hgx, 3, ("temperature", "59"))) == []
    # One at work is warm, and an idle one is not compared with those.
    busy = (("throttle_reasons", "0"), ("pcie_generation", "5"))
    assert told(examine, said(hgx, 3, ("temperature", "79"), *busy)) == []
    assert (
        told(
            examine,
            said(all_said(hgx, ("temperature", "30"), *busy), 3, ("temperature", "79"), ("throttle_reasons", "1")),
        )
        == []
    )


def test_of_two_idle_gpus_the_warmer_is_named(examine):
    """More warmth is worse in any case, so that this needs no majority."""
    two = machines.rtx_3090()
    assert told(examine, said(two, 0, ("temperature", "79"))) == [
        ("peer_temperature", "GPU0", "at most 59 degrees", "79 degrees", "degraded")
    ]
    assert told(examine, said(two, 0, ("temperature", "59"))) == []


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
