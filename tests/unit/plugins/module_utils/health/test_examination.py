# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an examination asks of a driver: opening it costs more than all the questions to a GPU."""

from ansible_collections.allreduce.gpu.plugins.module_utils.health.examination import Places, read
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.nvml import open_nvml
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines


def test_nvml_is_opened_once(measure, library, tmp_path):
    opened = []

    def opener(name):
        opened.append(name)
        return open_nvml(name)

    expected = measure(machines.dgx_a100())
    trees = [FileTree(str(tmp_path / name)) for name in ("sys", "proc", "root")]
    node, readings = read(Places(*trees, library=str(library), log=str(tmp_path / "kmsg"), opener=opener))
    assert opened == [str(library)]
    assert [gpu["uuid"] for gpu in node["gpus"]] == [gpu["uuid"] for gpu in expected["gpus"]]
    assert set(readings["counters"]) == {gpu["pci_bus_id"] for gpu in node["gpus"]}
