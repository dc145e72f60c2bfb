# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.health_helper import answer, node, result


@pytest.mark.parametrize(
    ("machine", "verdict", "check"),
    [
        (node(loaded_version=None, library_version=None), "failed", "module_loaded"),
        (node(library_version="550.1", nvml="mismatch", nvml_state="failed"), "reboot_required", "driver_library"),
        (node(library_version=None, nvml="not found", nvml_state="failed"), "failed", "driver_library"),
        (node(nvml="Unknown Error", nvml_state="failed"), "failed", "nvml"),
        (node(nvml="pynvml is missing", nvml_state="pynvml_missing"), "unknown", "nvml"),
        (node(fabric={"state": "in_progress"}), "failed", "fabric"),
        (node(fabric={"state": "not_started", "manager_needed": False}), "failed", "fabric"),
    ],
)
def test_each_fault_has_its_finding(machine, verdict, check):
    found = result(machine)
    assert found[0] == verdict
    assert {name for name, _severity in found[1]} == {check}


@pytest.mark.parametrize(
    ("machine", "absent"),
    [
        (node(fabric={"state": None}), "fabric"),
        (node(fabric={"state": "not_supported"}), "fabric"),
        (node(loaded_version=None), "driver_library"),
        (node(library_version="550.1"), "nvml"),
    ],
)
def test_what_does_not_apply_is_not_judged(machine, absent):
    names = [entry["check"] for entry in answer(machine)["judged"]]
    assert "xid" in names
    assert absent not in names


def test_a_fabric_that_is_set_up_is_judged_and_has_no_finding():
    found = answer(node(fabric={"state": "completed"}))
    assert "fabric" in [entry["check"] for entry in found["judged"]]
    assert found["findings"] == []


def test_a_node_without_gpus_is_not_judged():
    bare = {**node(loaded_version=None), "gpus": []}
    assert answer(bare)["judged"] == []
