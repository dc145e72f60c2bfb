# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A question that NVML refuses, and that a check goes by, leaves the check undecided: it never counts as answered well."""

from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.lab.nvml.fault import said

NO_PERMISSION, OPERATING_SYSTEM, NOT_READY = 4, 17, 27
QUESTIONS = (
    ("fabric_state", "fabric"),
    ("mig", "pending_modes"),
    ("link_speed", "nvlinks"),
    ("name", "nvlinks"),
    ("power_limit", "peer_power_limit"),
    ("max_clocks", "peer_clocks"),
    ("vbios", "peer_vbios"),
    ("inforom", "peer_inforom"),
    ("memory_mib", "peer_memory"),
    ("mig", "peer_mig_mode"),
    ("compute_mode", "peer_compute_mode"),
)


def told(found):
    return {(one["check"], one["gpu"], one["severity"]) for one in found["findings"]}


REFUSED = [(*pair, NO_PERMISSION) for pair in QUESTIONS]
REFUSED += [("fabric_state", "fabric", code) for code in (OPERATING_SYSTEM, NOT_READY)]


@pytest.mark.parametrize(("question", "check", "code"), REFUSED)
def test_what_nvml_refuses_is_unknown(examine, question, check, code):
    found = examine(said(machines.hgx_h100(), 3, (question, f"!{code}")))
    assert found["verdict"] == "unknown"
    assert (check, "GPU3", "unknown") in told(found)


@pytest.mark.parametrize("code", [2, 3, 6, 13, 25])
def test_what_a_gpu_does_not_have_is_not_unknown(examine, code):
    machine = machines.a40_pcie()
    for number in range(4):
        machine = said(machine, number, *((question, f"!{code}") for question, dummy in QUESTIONS))
    assert told(examine(machine)) == set()


def test_a_refused_question_about_every_gpu_is_unknown_of_every_gpu(examine):
    machine = machines.hgx_h100()
    for number in range(8):
        machine = said(machine, number, ("fabric_state", "!4"), ("vbios", "!4"))
    expected = {(check, f"GPU{number}", "unknown") for check in ("fabric", "peer_vbios") for number in range(8)}
    assert told(examine(machine)) == expected


def test_a_width_that_nobody_knows_is_unknown(examine):
    machine = said(machines.a40_pcie(), 1, ("pcie_width", "!4")).change(1, model=replace(machines.A40, pcie=(4, 0)))
    assert ("pcie_width", "GPU1", "unknown") in told(examine(machine))


def test_a_lower_generation_of_a_gpu_whose_state_is_refused_is_unknown(examine):
    busy = ("throttle_reasons", "0")
    slow = said(machines.a40_pcie(), 1, busy, ("performance_state", "!4"), ("pcie_generation", "2"))
    fast = said(machines.a40_pcie(), 1, busy, ("performance_state", "!4"), ("pcie_generation", "4"))
    assert ("pcie_generation", "GPU1", "unknown") in told(examine(slow))
    assert told(examine(fast)) == set()
