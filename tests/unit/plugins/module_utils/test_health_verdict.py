# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health_verdict import judge

LIMITS = {"gpu_count": None, "max_uncorrected_errors": 0, "persistence": True}
WELL = {
    "uncorrected_errors": 0,
    "remapped_rows": {"correctable": 0, "uncorrectable": 0, "pending": 0, "failed": 0},
    "retired_pages_pending": None,
    "throttle_reasons": 0x1,
}
ADDRESS = "0000:07:00.0"
STATE = {
    "driver": {"loaded": "535.1.1", "installed": "535.1.1"},
    "kernel": {"running": "6.1.0-40", "newest": "6.1.0-40"},
    "dkms": [{"module": "nvidia-current", "kernel": "6.1.0-40", "status": "installed"}],
    "packages": {"nvidia-fabricmanager": "535.1.1-1", "cuda-toolkit-12-2": "12.2.2-1"},
}


def node(gpu=None, **driver):
    one = {
        "index": 0, "pci_bus_id": ADDRESS, "name": "NVIDIA A100", "nvlinks": [], "seen_by": ["pci", "nvml"],
        "pcie": {"width": 16, "max_width": 16}, "ecc": {"current": True, "pending": True}, "persistence_mode": True,
    }  # fmt: skip
    return {
        "driver": {
            "loaded_version": "535.1.1",
            "library_version": "535.1.1",
            "cuda_driver_version": "12.2",
            "nvml": "ok",
            **driver,
        },
        "fabric": {"manager_needed": True, "state": None},
        "gpus": [{**one, **(gpu or {})}],
    }


def result(machine=None, state=None, counters=None, xids=(), **limits):
    answer = judge(
        machine or node(),
        {**STATE, **(state or {})},
        {ADDRESS: {**WELL, **(counters or {})}},
        xids,
        {**LIMITS, **limits},
    )
    return answer["verdict"], [(entry["check"], entry["severity"]) for entry in answer["findings"]]


def test_a_node_that_is_well():
    assert result() == ("ok", [])


@pytest.mark.parametrize(
    ("machine", "state", "verdict", "check"),
    [
        (node(loaded_version=None, library_version=None), {}, "reboot_required", "module_loaded"),
        (node(loaded_version=None), {"driver": {"installed": None}}, "failed", "module_loaded"),
        (node(), {"driver": {"installed": "550.1"}}, "reboot_required", "module_installed"),
        (node(library_version="550.1"), {}, "reboot_required", "driver_library"),
        (node(library_version=None), {}, "failed", "driver_library"),
        (node(), {"packages": {}}, "failed", "fabric_manager"),
        (node(), {"packages": {"nvidia-fabric-manager": "535.1.10-1"}}, "failed", "fabric_manager"),
        (node(), {"packages": None}, "ok", "fabric_manager"),
        (node(), {"packages": {**STATE["packages"], "cuda-toolkit-13-0": "13.0"}}, "degraded", "cuda_toolkit"),
        (node(), {"kernel": {"newest": "6.1.0-41"}}, "degraded", "next_kernel"),
    ],
)
def test_coherence(machine, state, verdict, check):
    found = result(machine, state)
    assert (found[0], found[1][0][0]) == (verdict, check)


@pytest.mark.parametrize(
    ("counters", "findings", "verdict"),
    [
        ({"uncorrected_errors": 2}, [("ecc_errors", "failed")], "failed"),
        ({"uncorrected_errors": None}, [("ecc_errors", "unknown")], "ok"),
        ({"remapped_rows": {"pending": 1, "failed": 0}}, [("row_remapping", "reboot_required")], "reboot_required"),
        ({"remapped_rows": {"pending": 0, "failed": 1}}, [("row_remapping", "failed")], "failed"),
        ({"retired_pages_pending": True}, [("page_retirement", "reboot_required")], "reboot_required"),
        ({"throttle_reasons": 0x4}, [], "ok"),
        ({"throttle_reasons": 0x48}, [("throttling", "degraded")] * 2, "degraded"),
        ({"throttle_reasons": None}, [("throttling", "unknown")], "ok"),
    ],
)
def test_counters(counters, findings, verdict):
    assert result(counters=counters) == (verdict, findings)


@pytest.mark.parametrize(
    ("gpu", "check"),
    [
        ({"pcie": {"width": 8, "max_width": 16}}, "pcie_width"),
        ({"persistence_mode": False}, "persistence_mode"),
        ({"seen_by": ["pci"], "index": None}, "gpu_answers"),
    ],
)
def test_a_gpu_that_is_not_at_its_best(gpu, check):
    verdict, findings = result(node(gpu))
    assert verdict == "degraded"
    assert (check, "degraded") in findings


@pytest.mark.parametrize(
    ("xids", "verdict"),
    [([("0000:07:00", 79)], "failed"), ([("0000:07:00", 63)], "degraded"), ([("0000:07:00", 31)], "ok"), (None, "ok")],
)
def test_xids(xids, verdict):
    assert result(xids=xids)[0] == verdict


def test_a_log_that_cannot_be_read_is_unknown():
    assert result(xids=None)[1] == [("xid", "unknown")]


def test_thresholds_are_options():
    assert result(counters={"uncorrected_errors": 2}, max_uncorrected_errors=2)[0] == "ok"
    assert result(node({"persistence_mode": False}), persistence=False)[0] == "ok"
    assert result(gpu_count=2) == ("failed", [("gpu_count", "failed")])


def test_a_host_without_gpu_is_well_unless_some_were_declared():
    bare = {**node(), "gpus": []}
    assert judge(bare, {}, {}, None, LIMITS) == {"verdict": "ok", "findings": []}
    assert judge(bare, {}, {}, [], {**LIMITS, "gpu_count": 4})["verdict"] == "failed"
