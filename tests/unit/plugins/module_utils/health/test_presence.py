# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs that do not answer, measured through the simulated library: whatever PCI shows, one that is missing has failed."""

import pytest
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines

LOST, RESET, TIMEOUT, POWER, UNKNOWN = 15, 16, 10, 8, 999


def told(found):
    return found["verdict"], [(one["check"], one["gpu"], one["severity"]) for one in found["findings"]]


@pytest.mark.parametrize("calls", [0, 1, 2, 5, 20, 60, 63, 66, 70])
def test_a_gpu_that_is_lost_at_any_moment_has_failed(examine, calls):
    """Lost before the first call, in the middle of gpu_facts, and between it and the counters."""
    verdict, findings = told(examine(machines.a40_pcie().change(2, failing=(LOST, calls))))
    assert verdict == "failed"
    assert {(check, severity) for check, dummy, severity in findings} == {("gpu_answers", "failed")}
    assert {name for dummy, name, severity in findings} <= {"GPU2", "0000:98:00.0"}


@pytest.mark.parametrize("code", [LOST, RESET, TIMEOUT])
def test_errors_after_which_a_gpu_cannot_be_used(examine, code):
    assert told(examine(machines.hgx_h100().change(5, failing=(code, 3)))) == (
        "failed",
        [("gpu_answers", "GPU5", "failed")],
    )


@pytest.mark.parametrize("calls", [0, 2, 63, 110, 140])
@pytest.mark.parametrize(
    ("code", "action"), [(LOST, "reboot"), (RESET, "reset"), (TIMEOUT, "reboot"), (POWER, "isolate")]
)
def test_nvml_s_reason_decides_the_action_whenever_it_comes(examine, code, action, calls):
    """Refused at once, in the middle of gpu_facts, and while the counters are read: a GPU that wants a reset needs no reboot."""
    found = examine(machines.hgx_h100().change(5, failing=(code, calls)))
    assert {one["action_class"] for one in found["findings"]} == {action}, found["findings"]


def test_gpus_that_nvml_cannot_open_for_several_reasons_are_rebooted(examine):
    """Which of those on the bus is which, NVML does not tell."""
    machine = machines.hgx_h100().change(5, failing=(RESET, 0)).change(6, failing=(LOST, 0))
    assert {one["action_class"] for one in examine(machine)["findings"]} == {"reboot"}


def test_an_internal_error_of_the_driver_at_one_question_is_a_finding(examine):
    machine = machines.a40_pcie().change(1, settings=(("power_limit", f"!{UNKNOWN}"),))
    found = [("gpu_answers", "GPU1", "degraded"), ("peer_power_limit", "GPU1", "unknown")]
    assert told(examine(machine)) == ("degraded", found)


@pytest.mark.parametrize("code", [3, 2, 6, 13])
def test_what_a_gpu_does_not_have_is_no_error(examine, code):
    machine = machines.a40_pcie()
    for number in range(4):
        machine = machine.change(number, settings=(("power_limit", f"!{code}"),))
    assert told(examine(machine)) == ("ok", [])


def test_seven_of_eight_have_failed(examine):
    found = examine(machines.hgx_h100().change(3, hidden=True))
    assert told(found) == ("failed", [("gpu_answers", machines.hgx_h100().gpus[3].address, "failed")])


def test_what_another_driver_holds_is_not_lost(examine):
    """As one that is passed through to a guest."""
    found = examine(machines.hgx_h100().change(3, hidden=True, driver="vfio-pci"))
    assert told(found) == ("degraded", [("gpu_answers", machines.hgx_h100().gpus[3].address, "degraded")])
    assert "vfio-pci" in found["findings"][0]["measured"]


def test_a_healthy_machine_answers(examine):
    for machine in (machines.a40_pcie(), machines.hgx_h100(), machines.a100_mig(), machines.v100_pcie()):
        assert told(examine(machine)) == ("ok", []), machine.name


@pytest.mark.parametrize(
    ("declared", "findings"),
    [
        (None, [("gpu_answers", "0000:45:00.0", "degraded")]),
        (8, [("gpu_answers", "0000:45:00.0", "degraded")]),
        (7, []),  # as the finding's action says
        (6, [("gpu_count", None, "degraded"), ("gpu_answers", "0000:45:00.0", "degraded")]),
        (9, [("gpu_count", None, "failed"), ("gpu_answers", "0000:45:00.0", "degraded")]),
    ],
)
def test_a_gpu_of_another_driver_is_well_where_it_is_not_counted(examine, declared, findings):
    machine = machines.hgx_h100().change(3, hidden=True, driver="vfio-pci")
    assert told(examine(machine, gpu_count=declared))[1] == findings
