# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode on a host with nothing of the plan: roles show what they would do, and no package manager is asked."""

import re

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

from tests.support.local_play import run_roles

ROLES = ["base", "nvidia_driver", "fabric_manager", "cuda_toolkit", "cudnn", "nccl"]
REQUEST = {"driver": "570", "cuda": "12.8", "cudnn": "9", "nccl": "2", "pytorch": "none"}
KERNEL = "6.8.0-60-generic"
SYSTEMS = {"ubuntu 22.04": "libcudnn9-cuda-12 9.", "rocky 9.6": "libcudnn9-cuda-12 9."}
# What is executed to compare, or as a prediction of its own.
READING = {"config_files", "copy", "file", "stat", "package_hold", "command", "ping"}


def facts(system, **request):
    """A host with eight A100 behind NVSwitch and its kernel's headers."""
    host = {"os": system, "gpus": ["NVIDIA A100-SXM4-80GB"] * 8, "nvswitches": 6, "ansible_core": "2.16"}
    stack = resolve({**host, "request": {**REQUEST, **request}})["stack"]
    state = {
        "package_manager": "apt" if stack["os"]["family"] == "debian" else "dnf",
        "packages": {"bash": "5.2"},
        "kernel": {"running": KERNEL, "newest": KERNEL, "installed": [KERNEL], "headers": [KERNEL]},
        "container": False,
        "dkms": [],
        "driver": {"loaded": None, "installed": None},
        "package_manager_interrupted": False,
        "apt_mirrors": [],
        "environments": {},
        "reboot_pending": None,
        "reboot_recorded": False,
    }
    return {"gpu_stack": stack, "gpu_node": {"gpus": [{}] * 8}, "gpu_node_state": state}


@pytest.mark.long
@pytest.mark.parametrize("system", SYSTEMS)
def test_what_would_be_done_is_shown(system, tmp_path):
    run = run_roles(tmp_path, ROLES, facts(system), "--check", "--diff")

    assert run.status == 0, run.output
    executed = {str(row["module"]).rpartition(".")[2] for row in run.executions}
    assert executed <= READING, executed
    for name in ("base", "driver", "fabric-manager", "cuda-toolkit", "cudnn", "nccl"):
        assert f"+++ after: packages of {name}" in run.output
    assert f"+{SYSTEMS[system]}" in run.output
    services = re.findall(r"(?m)^\+\+\+ after: service (\S+)", run.output)
    assert services[1:] == ["nvidia-persistenced", "nvidia-fabricmanager"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("system", "driver", "needed"),
    [
        ("ubuntu 22.04", "570", True),  # the unit is in nvidia-compute-utils-570
        ("ubuntu 22.04", "580", False),  # and here in a package nvidia-persistenced
        ("debian 12", "570", False),
        ("rocky 9.6", "570", False),
    ],
)
def test_only_ubuntus_unit_gets_a_drop_in(system, driver, needed, tmp_path):
    run = run_roles(tmp_path, ["nvidia_driver"], facts(system, driver=driver), "--check", "--diff")

    assert run.status == 0, run.output
    assert ("nvidia-persistenced.service.d/allreduce.conf" in run.output) == needed
    assert (
        "+ExecStart=/usr/bin/nvidia-persistenced --user nvidia-persistenced --persistence-mode" in run.output
    ) == needed
