# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver that somebody else is in charge of: no role touches it, nor what belongs to it."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.questions import question_from_facts
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

from tests.support.local_play import run_roles

ON = {"enabled": True, "active": True, "outdated": False}
STATE = {
    "kernel": {"running": "6.8.0-1030-nvidia", "installed": ["6.8.0-1030-nvidia"], "newest": "6.8.0-1030-nvidia"},
    "package_manager": "apt",
    "packages": {"nvidia-driver-580-server-open": "580.95.05", "nvidia-fabricmanager-580": "580.95.05"},
    "leftover_packages": {},
    "driver": {"loaded": "580.95.05", "installed": "580.95.05"},
    "driver_owner": {"code": "dgx_os", "name": "DGX OS 7.2.1"},
    "services": {"nvidia-fabricmanager": ON, "nvidia-imex": ON, "nvidia-persistenced": ON},
    "reboot_recorded": False,
}
GPUS = [{"name": "NVIDIA A100-SXM4-80GB", "pci_device_id": "0x20b2"}] * 8
NODE = {"gpus": GPUS, "nvswitches": {"count": 6}, "driver": {"kernel_modules": "open"}}
ROLES = ["cuda_repository", "nvidia_driver", "fabric_manager"]


def facts(**options):
    """The facts of a DGX A100, with the stack that they come to."""
    found = {"gpu_node": NODE, "gpu_node_state": STATE, "distribution": "Ubuntu", "distribution_version": "24.04"}
    answer = resolve(question_from_facts({"request": {"pytorch": "none"}, **options}, found, "2.19.0"))
    return {**found, "gpu_stack": answer["stack"]}


@pytest.mark.parametrize("state", ["present", "absent"])
def test_nothing_is_done_for_it(state, tmp_path):
    run = run_roles(tmp_path, ROLES, facts(), "--check", "--diff", "--extra-vars", f"nvidia_driver_state={state}")
    assert run.status == 0, run.output
    assert [row["role"] for row in run.executions] == [None], run.executions
    assert "changed=0" in run.output
    assert "node keeps the driver of DGX OS 7.2.1; gpu_stack_take_charge changes that." in run.output


def test_charge_is_taken_when_told_so():
    stack = facts(take_charge=True)["gpu_stack"]
    assert (stack["driver"]["source"], stack["repository"]["slug"]) == ("nvidia", "ubuntu2404")
    assert stack["fabric_manager"]["packages"]
