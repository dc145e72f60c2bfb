# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Imagined machines, measured through their trees and, by the real pynvml, through the simulated library."""

import ctypes
import os
import shutil

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import reading as health_reading
from ansible_collections.allreduce.gpu.plugins.module_utils.health.examination import with_errors
from ansible_collections.allreduce.gpu.plugins.module_utils.health.host_reading import read_host
from ansible_collections.allreduce.gpu.plugins.module_utils.health.p2p_access import read_p2p_access
from ansible_collections.allreduce.gpu.plugins.module_utils.health.processes import read_processes
from ansible_collections.allreduce.gpu.plugins.module_utils.health.verdict import judge
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import gpu_node
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.nvml import open_nvml
from ansible_collections.allreduce.gpu.tests.lab.nvml import recording
from ansible_collections.allreduce.gpu.tests.lab.nvml.machine import Machine
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.health_helper import LIMITS, persistent


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The simulated libnvidia-ml.so.1."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc to build the simulated NVML with")
    return recording.build_library(tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1")


@pytest.fixture
def measure(library, tmp_path, monkeypatch):
    """A function that records a machine and measures it as gpu_facts does."""

    def measured(machine: Machine, levels=None, databases=()) -> dict:
        shutil.rmtree(tmp_path / "sys", ignore_errors=True)
        shutil.rmtree(tmp_path / "proc", ignore_errors=True)
        shutil.rmtree(tmp_path / "root", ignore_errors=True)
        recording.record(machine, tmp_path, levels)
        ctypes.CDLL(str(library)).simulated_reset()
        monkeypatch.setenv("SIMULATED_NVML", str(tmp_path / "profile"))
        name = str(library) if machine.library else str(tmp_path / "libnvidia-ml.so.1")
        return gpu_node.measure(FileTree(str(tmp_path / "sys")), FileTree(str(tmp_path / "proc")), name, databases)

    return measured


@pytest.fixture
def counters(measure, library):
    """A function that records a machine and reads its health counters."""

    def read(machine: Machine) -> dict:
        node = measure(machine)
        with open_nvml(str(library)) as (nvml, unavailable):
            assert unavailable is None
            return health_reading.read_gpus(nvml, node["gpus"])

    return read


@pytest.fixture
def examine(measure, library, tmp_path):
    """A function that records a machine with persistence mode and judges it as gpu_health does."""

    def examined(machine: Machine, log="", **limits) -> dict:
        node = measure(persistent(machine))
        name = str(library) if machine.library else "libnone.so.1"
        sys_tree, proc_tree, tree = (FileTree(str(tmp_path / part)) for part in ("sys", "proc", "root"))
        with open_nvml(name) as (nvml, dummy_problem):
            read, processes = read_processes(
                lambda: health_reading.read_gpus(nvml, node["gpus"]) if nvml else {}, proc_tree, tree, seconds=0
            )
            pairs, errors = read_p2p_access(nvml, node["gpus"]) if nvml else ({}, {})
        host = read_host(sys_tree, proc_tree, tree, [gpu["pci_bus_id"] for gpu in node["gpus"]])
        readings = {
            "counters": with_errors(read, errors),
            "p2p_access": pairs,
            "processes": processes,
            "log": log,
            "host": host,
        }
        return judge(node, readings, {**LIMITS, **limits})

    return examined


@pytest.fixture(params=["027", "077"])
def root_umask(request):
    """Run a test with a umask that hardened hosts give root."""
    before = os.umask(int(request.param, 8))
    yield
    os.umask(before)
