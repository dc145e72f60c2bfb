# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers with Arm processors, planned from the facts that modules measure on recorded machines."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan import plan
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.conftest import (  # noqa: F401  # pylint: disable=unused-import
    library,
    measure,
)

SYSTEMS = {
    "ubuntu": {"distribution": "Ubuntu", "distribution_version": "24.04", "architecture": "aarch64"},
    "rhel": {"distribution": "RedHat", "distribution_version": "9.6", "architecture": "aarch64"},
}
FEATURES = {"cuda": "13.0", "nccl": "latest", "cudnn": "latest"}
REPOSITORIES = {
    "ubuntu": "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/sbsa/",
    "rhel": "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/sbsa/",
}


@pytest.fixture
def planned(measure):  # noqa: F811
    """A function that measures a machine without a driver and plans it as playbook plan does."""

    def ask(machine, system, **request):
        facts = {**SYSTEMS[system], "gpu_node": measure(machine.without_driver()), "gpu_node_state": {}}
        found = plan({"node": {"ansible_facts": facts, "gpu_stack_request": request}}, "2.19.0")
        assert found["refused"] == []
        return found["stacks"][0]["stack"]

    return ask


def names(part):
    return {package["name"]: package["version"] for package in part["packages"]}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("machine", [machines.gh200, machines.gb200_tray], ids=lambda machine: machine.__name__)
def test_everything_comes_for_arm_servers(planned, machine, system):
    stack = planned(machine(), system, **FEATURES)
    assert stack["os"]["arch"] == "aarch64"
    assert (stack["repository"]["url"], stack["repository"]["directory"]) == (REPOSITORIES[system], "sbsa")
    assert stack["driver"]["kernel_modules"] == "open"
    assert stack["fabric_manager"] is None
    every = [
        *stack["driver"]["packages"],
        *stack["cuda"]["packages"],
        *stack["nccl"]["packages"],
        *stack["cudnn"]["packages"],
    ]
    # Names of packages are those of x86_64; the package manager knows the architecture.
    assert [one for one in every if any(word in one["name"] for word in ("amd64", "x86", "i386", "arm64"))] == []
    torch = stack["environments"][0]
    assert torch["frameworks"]["pytorch"] and torch["accelerator"] == "cuda"


def test_a_grace_hopper_server_needs_neither_fabric_manager_nor_imex(planned):
    stack = planned(machines.gh200(), "ubuntu")
    assert [gpu["model"] for gpu in stack["gpus"]] == ["GH200"]
    assert "imex" not in stack
    assert "nvidia-headless-open" in names(stack["driver"])


@pytest.mark.parametrize(
    ("system", "imex"), [("ubuntu", {"nvidia-imex": "595.91.07-1ubuntu1"}), ("rhel", {"nvidia-imex": "595.91.07-*"})]
)
def test_a_tray_of_a_rack_gets_imex(planned, system, imex):
    stack = planned(machines.gb200_tray(), system, driver="595.91.07")
    assert [(gpu["model"], gpu["count"]) for gpu in stack["gpus"]] == [("GB200", 4)]
    assert names(stack["imex"]) == imex


def test_the_plan_is_the_same_once_there_is_a_driver(measure, tmp_path):  # noqa: F811
    machine = machines.gb200_tray()
    stacks = []
    for one in (machine.without_driver(), replace(machine, driver="595.91.07", library="595.91.07")):
        facts = {**SYSTEMS["ubuntu"], "gpu_node": measure(one), "gpu_node_state": {}}
        (found,) = plan({"node": {"ansible_facts": facts}}, "2.19.0")["stacks"]
        stacks.append(found["stack"])
        shutil.rmtree(tmp_path / "sys")
    assert stacks[0]["kind"] == stacks[1]["kind"]
