# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.benchmark.limits import PCIE, TABLE, limit

H100, V100, L4 = "NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-32GB", "NVIDIA L4"
ROWS = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize(
    ("name", "case", "model", "found"),
    [
        ("gemm", {"precision": "bf16"}, H100, 989.5),
        ("gemm", {"precision": "fp16"}, H100, 989.5),
        ("gemm", {"precision": "fp16"}, V100, 125),
        ("gemm", {"precision": "bf16"}, V100, None),
        ("memory_copy", {}, H100, 3350),
        ("host_to_device", {}, H100, 63.02),
        ("device_to_host", {}, V100, 15.75),
        ("peer_copy", {"from": 0, "to": 1}, H100, 450),
        ("peer_copy", {"from": 0, "to": 1}, L4, None),
        ("all_reduce", {"ranks": 8}, H100, None),
        ("training", {}, H100, None),
        ("memory_copy", {}, "another", None),
    ],
)
def test_each_figure_has_the_limit_of_its_part_of_the_card(name, case, model, found):
    assert limit(name, case, model) == found


def test_every_row_has_a_source_and_no_card_two_rows():
    names = [name for row in ROWS for name in row["names"]]
    assert len(names) == len(set(names))
    assert all(row["source"] and row["memory"] and row["pcie"] in PCIE for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["names"][0])
def test_products_are_without_sparsity(row):
    """Of every card here that has it, TF32 is half of BF16, and plain FP32 is not above TF32."""
    tflops = row["tflops"]
    if "tf32" in tflops:
        assert tflops["bf16"] / tflops["tf32"] == pytest.approx(2, rel=0.02)
        assert tflops["fp32"] <= tflops["tf32"]
