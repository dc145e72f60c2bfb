# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.health_helper import STATE, answer, node, result

STOPPED = {"nvidia-fabricmanager": {"enabled": True, "active": False}}
DISABLED = {"nvidia-fabricmanager": {"enabled": False, "active": True}}
SWITCHED = {"driver": {"installed": "550.1"}, "packages": {"nvidia-fabricmanager-550": "550.1-1"}}
UNASKED = {"nvidia-fabricmanager": {"enabled": None, "active": None}}
NO_FABRIC = {"manager_needed": False}


@pytest.mark.parametrize(
    ("machine", "state", "verdict", "check"),
    [
        (node(loaded_version=None, library_version=None), {}, "reboot_required", "module_loaded"),
        (node(loaded_version=None), {"driver": {"installed": None}}, "failed", "module_loaded"),
        (node(), {"driver": {"installed": "550.1"}}, "reboot_required", "module_loaded"),
        (node(), {"driver": {"installed": None}}, "ok", "module_loaded"),
        (node(), {**SWITCHED, "services": STOPPED}, "reboot_required", "module_loaded"),
        (node(library_version="550.1", nvml_state="version_mismatch"), {}, "reboot_required", "driver_library"),
        (node(library_version=None, nvml_state="library_missing"), {}, "failed", "driver_library"),
        (node(nvml="Unknown Error", nvml_state="nvml_error"), {}, "failed", "nvml"),
        (node(nvml_state="pynvml_missing"), {}, "ok", "nvml"),
        (node(), {"packages": {}}, "failed", "fabric_manager"),
        (node(), {"packages": {"nvidia-fabric-manager": "535.1.10-1"}}, "failed", "fabric_manager"),
        (node(), {"packages": None}, "ok", "fabric_manager"),
        (node(), {"services": STOPPED}, "failed", "fabric_manager"),
        (node(), {"services": DISABLED}, "degraded", "fabric_manager"),
        (node(), {"services": UNASKED}, "ok", "fabric_manager"),
        (node(fabric={"state": "in_progress"}), {}, "failed", "fabric_manager"),
        (node(), {"packages": {**STATE["packages"], "cuda-toolkit-13-0": "13.0"}}, "degraded", "cuda_toolkit"),
        (node(cuda_driver_version=None), {}, "ok", "cuda_toolkit"),
    ],
)
def test_each_difference_has_its_finding(machine, state, verdict, check):
    found = result(machine, state)
    assert found[0] == verdict
    assert {name for name, severity in found[1]} == {check}


def test_several_faults_of_the_fabric_are_findings_of_one_check():
    found = result(node(fabric={"state": "not_started"}), {"packages": {}, "services": STOPPED})
    assert found[1] == [("fabric_manager", "failed")] * 3


@pytest.mark.parametrize(
    ("next_module", "newest", "findings"),
    [
        (True, "6.1.0-41", []),
        (False, "6.1.0-41", [("next_kernel", "degraded")]),
        (None, "6.1.0-40", []),
        (None, "6.1.0-41", [("next_kernel", "degraded")]),
    ],
)
def test_the_next_kernel_has_the_module(next_module, newest, findings):
    assert result(state={"kernel": {"newest": newest}}, next_module=next_module)[1] == findings


def test_without_dkms_and_without_a_list_of_modules_nobody_knows():
    assert result(state={"dkms": []}, next_module=None) == ("ok", [("next_kernel", "unknown")])


@pytest.mark.parametrize(
    ("machine", "state", "absent"),
    [
        (node(fabric=NO_FABRIC), {}, "fabric_manager"),
        (node(), {"packages": {"nvidia-fabricmanager": "535.1.1"}}, "cuda_toolkit"),
        (node(), {"kernel": {"newest": None}}, "next_kernel"),
        (node(loaded_version=None), {}, "driver_library"),
        (node(), {"driver": {"installed": None}, "container": True}, "module_loaded"),
    ],
)
def test_what_does_not_apply_is_not_judged(machine, state, absent):
    names = [entry["check"] for entry in answer(machine, state)["judged"]]
    assert "xid" in names
    assert absent not in names


def test_a_host_with_a_driver_and_no_gpu_is_judged_by_its_next_kernel():
    bare = {**node(loaded_version=None), "gpus": []}
    assert [entry["check"] for entry in answer(bare)["judged"]] == ["next_kernel"]
