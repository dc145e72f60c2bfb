# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interrupts of a recorded adapter on the second of two NUMA nodes."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import interrupts
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import server


def test_those_outside_the_node_are_named(tmp_path):
    found = interrupts.read(tree(tmp_path, server()), "ens1")
    assert found == {"node": 1, "cpus": "2-3", "irqs": {"120": "0", "121": "2", "122": "3"}}
    assert interrupts.strays(found) == ["120"]


def test_the_processor_that_the_kernel_chose_counts(tmp_path):
    files = {**server(), "/proc/irq/120/effective_affinity_list": "3\n", "/proc/irq/121/effective_affinity_list": "1\n"}
    assert interrupts.strays(interrupts.read(tree(tmp_path, files), "ens1")) == ["121"]


@pytest.mark.parametrize("node", ["-1\n", None])
def test_a_device_without_a_node_has_no_strays(tmp_path, node):
    files = server()
    if node is None:
        del files["/sys/devices/pci0000:16/0000:16:00.0/numa_node"]
    else:
        files["/sys/devices/pci0000:16/0000:16:00.0/numa_node"] = node
    found = interrupts.read(tree(tmp_path, files), "ens1")
    assert found["cpus"] is None and interrupts.strays(found) == []


def test_an_interface_that_is_not_there(tmp_path):
    assert interrupts.read(tree(tmp_path, server()), "ens9") == {"node": None, "cpus": None, "irqs": {}}


@pytest.mark.parametrize(("text", "numbers"), [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), (None, set())])
def test_lists_of_processors(text, numbers):
    assert interrupts.members(text) == numbers
