# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processors by package and NUMA node, on recorded machines."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import processors
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree


def place(package, node, cores, threads, cpus):
    return {"package": package, "node": node, "cores": cores, "threads": threads, "cpus": cpus}


@pytest.mark.parametrize(
    ("machine", "places"),
    [
        (machines.rtx_3090(), [place(0, 0, 32, 1, "0-31")]),
        (machines.a40_pcie(), [place(0, 0, 32, 2, "0-31,64-95"), place(1, 1, 32, 2, "32-63,96-127")]),
        (
            machines.dgx_a100(),
            [
                place(
                    node // 4,
                    node,
                    16,
                    2,
                    f"{16 * node}-{16 * node + 15},{16 * node + 128}-{16 * node + 143}",
                )
                for node in range(8)
            ],
        ),
    ],
    ids=["one package", "two packages", "NUMA nodes in packages"],
)
def test_the_places_of_a_machine(machine, places, tmp_path):
    recording.write_sysfs(machine, tmp_path / "sys")
    recording.write_processors(machine, tmp_path / "sys")
    assert processors.read(FileTree(str(tmp_path))) == places


def cpus(**found):
    """Files of processors: {cpu0: (package, siblings)}."""
    files = {}
    for name, (package, siblings) in found.items():
        topology = f"/sys/devices/system/cpu/{name}/topology"
        files[topology + "/physical_package_id"] = package
        files[topology + "/thread_siblings_list"] = siblings
    return files


def test_packages_are_ordered_by_their_first_processor(tmp_path):
    """Firmware may number the second package first."""
    found = processors.read(tree(tmp_path, cpus(cpu0=("1", "0"), cpu1=("0", "1"), cpu2=("1", "2"), cpu3=("0", "3"))))
    assert found == [place(1, None, 2, 1, "0,2"), place(0, None, 2, 1, "1,3")]


def test_threads_that_differ(tmp_path):
    """Cores for performance have two, those for efficiency one."""
    found = processors.read(tree(tmp_path, cpus(cpu0=("0", "0-1"), cpu1=("0", "0-1"), cpu2=("0", "2"))))
    assert found == [place(0, None, 2, None, "0-2")]


def test_what_is_offline_or_no_processor_does_not_count(tmp_path):
    files = cpus(cpu0=("0", "0"), cpufreq=("0", "9"))
    files["/sys/devices/system/cpu/cpu1/online"] = "0"
    assert processors.read(tree(tmp_path, files)) == [place(0, None, 1, 1, "0")]


def test_a_kernel_that_shows_nothing(tmp_path):
    assert processors.read(FileTree(str(tmp_path))) == []
