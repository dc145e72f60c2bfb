# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of GPUs and the order of names; distances are tested on whole machines in test_gpu_node.py."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.topology import gpu_label, natural_key


@pytest.mark.parametrize(("index", "name"), [(0, "GPU0"), (12, "GPU12"), (None, "0000:3b:00.0")])
def test_a_gpu_goes_by_its_index_else_by_its_address(index, name):
    assert gpu_label({"index": index, "pci_bus_id": "0000:3b:00.0"}) == name


@pytest.mark.parametrize(
    "ordered",
    [
        ["mlx5_2", "mlx5_10"],
        ["gpu-1", "gpu-2", "gpu-10", "login"],
        ["9", "10", "node"],
        ["node09", "node9", "node10"],
        ["x", "x\u00b2"],
    ],
)
def test_numbers_in_names_sort_as_numbers(ordered):
    backwards = ordered[::-1]
    assert sorted(backwards, key=natural_key) == ordered
