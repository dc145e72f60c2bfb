# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding GPUs by what people and programs call them."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.gpu_names import find_gpu
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

TABLES = load()


@pytest.mark.parametrize("row", TABLES.rows("gpus"), ids=lambda row: row["model"])
def test_every_row_is_found_by_its_own_names(row):
    for name in (row["model"], *row.get("names", ()), *row["pci_ids"]):
        assert find_gpu(TABLES, name)["model"] == row["model"]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("A100-SXM4-40GB", "A100 SXM4 40GB"),
        ("Tesla T4", "Tesla T4"),
        ("t4", "Tesla T4"),
        ("NVIDIA GeForce RTX 3090", "GeForce RTX 3090"),
        ("rtx 3090 ti", "GeForce RTX 3090 Ti"),
        ("RTX A6000", "RTX A6000"),
        ({"name": None, "pci_device_id": "0x2235"}, "A40"),
        ({"name": "NVIDIA A40", "pci_device_id": "ffff"}, "A40"),
    ],
)
def test_names(name, model):
    assert find_gpu(TABLES, name)["model"] == model


def test_a_short_name_takes_the_strictest_of_all_it_can_mean():
    row = find_gpu(TABLES, "V100")
    assert row["ambiguous"] == ["Tesla V100 SXM2 16GB", "Tesla V100 SXM2 32GB", "Tesla V100 PCIe"]
    assert row["kernel_modules"] == ["proprietary"]


@pytest.mark.parametrize("name", ["", "RTX", "Radeon Instinct MI250", "9.9", "ffff", "NVIDIA"])
def test_what_is_no_gpu(name):
    assert find_gpu(TABLES, name) is None
