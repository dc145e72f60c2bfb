# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits of a GPU by its data sheet, so that a slow one is seen without a peer: data/benchmark/limits.yml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).resolve().parents[3] / "data" / "benchmark" / "limits.yml"
# GB/s of 16 lanes in one direction, by generation: GT/s and encoding of the PCI Express Base Specification.
PCIE = {3: 15.75, 4: 31.51, 5: 63.02}
SAME = {"fp16": "bf16"}  # data sheets give both the same number


def limit(name: str, case: Mapping[str, Any], model: str) -> float | None:
    """Return the limit of a figure in its unit; None where the data sheet has none, or the model is not in the table.

    >>> limit("gemm", {"precision": "fp16"}, "NVIDIA A100-SXM4-80GB"), limit("training", {}, "NVIDIA A100-SXM4-80GB")
    (312, None)
    """
    row = _rows().get(model)
    if row is None:
        return None
    if name == "gemm":
        precision = str(case.get("precision"))
        return row["tflops"].get(precision, row["tflops"].get(SAME.get(precision)))
    if name in ("host_to_device", "device_to_host"):
        return PCIE[row["pcie"]]
    return row.get({"memory_copy": "memory", "peer_copy": "nvlink"}.get(name, ""))


@cache
def _rows() -> dict[str, dict[str, Any]]:
    content = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return {name: row for row in content["rows"] for name in row["names"]}
