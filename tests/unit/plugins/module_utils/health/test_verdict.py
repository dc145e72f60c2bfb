# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.verdict import JUDGES, judge
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.describe import SENTENCES
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.problems import problem
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.health_helper import (
    ADDRESS,
    LIMITS,
    answer,
    node,
    result,
)


def unanswered(function, code="no_permission", **values):
    """What NVML failed to say, of a GPU that has it."""
    return {"nvml_errors": {function: code}, **values}


NOTHING = {"counters": {}, "log": ""}


def test_a_node_that_is_well_and_what_was_judged():
    found = answer(gpu_count=1)
    assert (found["verdict"], found["findings"]) == ("ok", [])
    assert [(entry["category"], entry["check"]) for entry in found["judged"]] == [
        ("coherence", "module_loaded"), ("coherence", "driver_library"), ("coherence", "nvml"),
        ("health", "gpu_count"), ("health", "gpu_answers"), ("health", "pcie_width"), ("health", "ecc_errors"),
        ("health", "row_remapping"), ("health", "xid"), ("health", "throttling"), ("health", "persistence_mode"),
        ("health", "pending_modes"), ("health", "oom_kills"), ("health", "machine_checks"), ("health", "other_problems"),
    ]  # fmt: skip
    assert found["counters"]["GPU0"]["uncorrected_errors"] == 0


@pytest.mark.parametrize(
    ("counters", "findings", "verdict"),
    [
        ({"uncorrected_errors": 2}, [("ecc_errors", "failed")], "failed"),
        ({"uncorrected_errors": None}, [("ecc_errors", "unknown")], "unknown"),
        (unanswered("DeviceGetTotalEccErrors", uncorrected_errors=None), [("ecc_errors", "unknown")], "unknown"),
        ({"remapped_rows": {"pending": 1, "failed": 0}}, [("row_remapping", "reboot_required")], "reboot_required"),
        ({"remapped_rows": {"pending": 0, "failed": 1}}, [("row_remapping", "failed")], "failed"),
        # A GPU that has neither.
        ({"remapped_rows": None, "retired_pages_pending": None}, [], "ok"),
        (unanswered("DeviceGetRemappedRows", remapped_rows=None), [("row_remapping", "unknown")], "unknown"),
        (
            unanswered("DeviceGetRetiredPagesPendingStatus", remapped_rows=None),
            [("page_retirement", "unknown")],
            "unknown",
        ),
        ({"remapped_rows": None, "retired_pages_pending": False}, [], "ok"),
        ({"retired_pages_pending": False, "retired_pages": 63}, [], "ok"),
        ({"retired_pages_pending": False, "retired_pages": 64}, [("page_retirement", "degraded")], "degraded"),
        (
            {"retired_pages_pending": True, "retired_pages": 64},
            [("page_retirement", "reboot_required"), ("page_retirement", "degraded")],
            "reboot_required",
        ),
        (
            unanswered("DeviceGetRetiredPages", remapped_rows=None, retired_pages_pending=False),
            [("page_retirement", "unknown")],
            "unknown",
        ),
        ({"retired_pages_pending": True}, [("page_retirement", "reboot_required")], "reboot_required"),
        ({"clock_reasons": ["idle", "software_power_cap"]}, [], "ok"),
        (
            {"performance_state": 2, "clock_reasons": ["hardware_slowdown", "hardware_thermal"]},
            [("throttling", "degraded")] * 2,
            "degraded",
        ),
        ({"clock_reasons": None}, [], "ok"),
        (
            unanswered("DeviceGetCurrentClocksThrottleReasons", clock_reasons=None),
            [("throttling", "unknown")],
            "unknown",
        ),
    ],
)
def test_counters(counters, findings, verdict):
    assert result(counters=counters) == (verdict, findings)


@pytest.mark.parametrize(
    ("gpu", "finding"),
    [
        ({"pcie": {"width": 8, "max_width": 16}}, ("pcie_width", "degraded")),
        ({"persistence_mode": False}, ("persistence_mode", "degraded")),
        (unanswered("DeviceGetPersistenceMode", persistence_mode=None), ("persistence_mode", "unknown")),
        (unanswered("DeviceGetEccMode", ecc={"current": None, "pending": None}), ("ecc_errors", "unknown")),
        ({"seen_by": ["pci"], "index": None}, ("gpu_answers", "failed")),
        ({"ecc": {"current": True, "pending": False}}, ("pending_modes", "reboot_required")),
        ({"mig": {"current": False, "pending": True}}, ("pending_modes", "reboot_required")),
    ],
)
def test_a_gpu_that_is_not_at_its_best(gpu, finding):
    assert result(node(gpu))[1] == [finding]


@pytest.mark.parametrize(
    ("gpu", "counters"),
    [
        ({"persistence_mode": None}, {}),
        ({"vgpu": True}, {"uncorrected_errors": None, "remapped_rows": None}),
        ({"ecc": {"current": None, "pending": None}}, {"uncorrected_errors": None, "remapped_rows": None}),
    ],
    ids=["no persistence", "vgpu", "no ecc"],
)
def test_what_a_gpu_does_not_have_is_not_unknown(gpu, counters):
    assert result(node(gpu), counters=counters) == ("ok", [])


def test_a_gpu_that_nvml_cannot_open_is_one_finding_that_says_why():
    lost = [
        problem("gpu_not_opened", "GPU0", reason="GPU is lost", error="gpu_lost"),
        problem("gpu_not_in_nvml", ADDRESS),
    ]
    found = answer(node({"seen_by": ["pci"], "index": None}, findings=lost), gpu_count=1)
    assert [(entry["check"], entry["gpu"], entry["measured"], entry["severity"]) for entry in found["findings"]] == [
        ("gpu_answers", ADDRESS, "NVML cannot open GPU0: GPU is lost", "failed")
    ]


def test_a_gpu_that_nvml_cannot_open_and_that_is_not_on_the_bus_has_failed_too():
    found = answer(node(findings=[problem("gpu_not_opened", "GPU1", reason="Unknown Error", error="unknown_error")]))
    assert [(entry["check"], entry["gpu"], entry["severity"]) for entry in found["findings"]] == [
        ("gpu_answers", "GPU1", "failed")
    ]


@pytest.mark.parametrize(
    ("one", "machine", "checks"),
    [
        (problem("acs_redirect", "0000:16:02.0"), {}, {"other_problems"}),
        (problem("gpu_not_on_bus", "GPU0", pci_bus_id=ADDRESS), {}, {"other_problems"}),
        (problem("fabric_not_ready", state="not_started"), {"fabric": {"state": "not_started"}}, {"fabric"}),
        # The manager of a fabric that spans a rack is not on the node; what is not set up is a fault all the same.
        (
            problem("fabric_not_ready", state="not_started"),
            {"fabric": {"state": "not_started", "manager_needed": False}},
            {"fabric"},
        ),
        (
            problem("driver_mismatch", loaded="535.1.1", library="550.1"),
            {"library_version": "550.1", "nvml_state": "version_mismatch"},
            {"driver_library"},
        ),
        (
            problem("nvml_unavailable", loaded="535.1.1", state="nvml_error", reason="Unknown Error"),
            {"nvml_state": "nvml_error"},
            {"nvml"},
        ),
        (
            problem("pcie_link_narrow", "GPU0", width=8, max_width=16),
            {"gpu": {"pcie": {"width": 8, "max_width": 16}}},
            {"pcie_width"},
        ),
    ],
)
def test_a_problem_is_told_once(one, machine, checks):
    assert {name for name, _severity in result(node(findings=[one], **machine))[1]} == checks


def test_every_problem_that_another_check_judges_exists():
    assert set(JUDGES) < set(SENTENCES)


@pytest.mark.parametrize(
    ("xids", "verdict"),
    [
        ([("0000:07:00", 79)], "failed"),
        ([("0000:07:00", 63)], "degraded"),
        ([("0000:07:00", 31)], "ok"),
        (None, "unknown"),
    ],
)
def test_xids(xids, verdict):
    assert result(xids=xids)[0] == verdict


def test_a_log_that_cannot_be_read_is_unknown():
    assert result(xids=None)[1] == [("xid", "unknown")]


def test_thresholds_are_options():
    rows = {"uncorrectable": 3, "pending": 0, "failed": 0}
    assert result(counters={"uncorrected_errors": 2}, max_uncorrected_errors=2)[0] == "ok"
    assert result(node({"persistence_mode": False}), persistence=False)[0] == "ok"
    assert result(counters={"remapped_rows": rows})[0] == "ok"
    assert result(counters={"remapped_rows": rows}, max_remapped_rows=2) == (
        "degraded",
        [("row_remapping", "degraded")],
    )
    assert result(xids=[("0000:07:00", 79)], ignored_xids=[79])[0] == "ok"
    assert result(xids=[("0000:07:00", 31)], ignored_xids=[])[0] == "degraded"
    assert result(gpu_count=2) == ("failed", [("gpu_count", "failed")])


def test_a_skipped_check_gives_no_finding_and_says_that_it_was_skipped():
    broken = node(
        {"pcie": {"width": 8, "max_width": 16}}, findings=[problem("pcie_link_narrow", "GPU0", width=8, max_width=16)]
    )
    found = answer(broken, xids=[("0000:07:00", 79)], skip_checks=["pcie_width", "xid", "nvlinks"])
    assert (found["verdict"], found["findings"]) == ("ok", [])
    assert not {"pcie_width", "xid"} & {entry["check"] for entry in found["judged"]}
    assert found["skipped_checks"] == ["pcie_width", "xid"], "not nvlinks, of which there are none"


def test_a_host_without_gpu_is_well_unless_some_were_declared():
    bare = {**node(), "gpus": []}
    assert judge(bare, NOTHING, LIMITS) == {
        "verdict": "ok", "findings": [], "notes": [], "judged": [], "skipped_checks": [], "counters": {},
    }  # fmt: skip
    assert judge(bare, NOTHING, {**LIMITS, "gpu_count": 4})["verdict"] == "failed"


# Imagined machines, measured through their trees and the simulated library.
@pytest.mark.parametrize(
    ("machine", "findings"),
    [
        (machines.a40_pcie(), []),
        (machines.rtx_3090(), []),
        (machines.a40_pcie().change(2, lost=True), [("gpu_answers", "0000:98:00.0", "failed")]),
        (machines.a40_pcie().change(1, hidden=True), [("gpu_answers", "0000:31:00.0", "failed")]),
        (machines.a40_pcie().change(3, width=8), [("pcie_width", "GPU3", "degraded")]),
        (
            machines.dgx_a100().change(4, links=machines.dgx_a100().gpus[4].links[:10]),
            [("nvlinks", "GPU4", "degraded")],
        ),
        (
            machines.a40_pcie().change(
                1, settings=(("ecc_errors.1.0", "3"), ("throttle_reasons", "0x80"), ("pcie_generation", "4"))
            ),
            [("ecc_errors", "GPU1", "failed"), ("throttling", "GPU1", "degraded")],
        ),
    ],
    ids=["a40", "3090", "lost", "hidden", "narrow", "links", "errors"],
)
def test_simulated_machines(examine, machine, findings):
    found = examine(machine, gpu_count=len(machine.gpus))
    assert [(entry["check"], entry["gpu"], entry["severity"]) for entry in found["findings"]] == findings
