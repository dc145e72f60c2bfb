# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of verify.json as gpu_facts and gpu_health measure simulated machines: through their trees and their NVML."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from ansible_collections.allreduce.gpu.plugins.module_utils.health import reading as health_reading
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_table import OPTIONS
from ansible_collections.allreduce.gpu.plugins.module_utils.health.verdict import judge
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import gpu_node
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.nvml import open_nvml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import health
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording
from ansible_collections.allreduce.gpu.tests.lab.nvml.machine import Machine
from ansible_collections.allreduce.gpu.tests.report import cluster

LIMITS = {"skip_checks": [], **{name: option.get("default") for name, option in OPTIONS.items()}}


def settled(machine: Machine) -> Machine:
    """Persistence mode on everywhere, idle clocks, as on a node that was set up."""
    for number, gpu in enumerate(machine.gpus):
        machine = machine.change(
            number, settings=(*gpu.settings, ("persistence_mode", "1"), ("throttle_reasons", "0x1"))
        )
    return machine


def broken() -> Machine:
    """An 8-GPU machine with one GPU lost, one on a narrow link, one with two dead NVLinks, one with a bad memory."""
    machine = machines.dgx_a100()
    machine = machine.change(1, width=8).change(3, lost=True)
    machine = machine.change(4, links=machine.gpus[4].links[:10])
    return machine.change(6, settings=(("remapped_rows", "0 3 1 0"), ("ecc_errors.1.0", "2")))


MACHINES = {
    "dgx": machines.dgx_a100,
    "a40": machines.a40_pcie,
    "workstation": machines.rtx_3090,
    "broken": broken,
    "cube": machines.v100_cube_mesh,
    "mig": machines.a100_mig,
    "nvlink": machines.a100_nvlink,
}


@cache
def measured(name: str) -> dict[str, Any]:
    """{``gpu_node``, ``gpu_health``, ``checks``} of one simulated machine."""
    machine = settled(MACHINES[name]())
    with TemporaryDirectory() as folder:
        root = Path(folder)
        recording.record(machine, root)
        library = str(recording.build_library(root / "libnvidia-ml.so.1"))
        with mock.patch.dict(os.environ, {"SIMULATED_NVML": str(root / "profile")}):
            node = gpu_node.measure(FileTree(str(root / "sys")), FileTree(str(root / "proc")), library)
            with open_nvml(library) as (nvml, _state):
                counters = health_reading.read_gpus(nvml, node["gpus"])
    readings = {"counters": counters, "log": ""}
    judged = judge(node, readings, {**LIMITS, "gpu_count": len(machine.gpus)})
    return {"gpu_node": node, "gpu_health": judged, "checks": list(health.checks({}, node, judged))}


def verification(**names: str) -> dict[str, Any]:
    """A document of verification whose nodes are simulated machines: {node: machine}."""
    document = cluster.verification()
    document["nodes"] = {}
    for number, (label, name) in enumerate(names.items(), start=1):
        found = measured(name)
        node = cluster.node(label, f"10.77.1.{number}")
        checks = [{**check, "node": label} for check in found["checks"]]
        document["nodes"][label] = {**node, **found, "checks": [*node["checks"], *checks]}
    return document
