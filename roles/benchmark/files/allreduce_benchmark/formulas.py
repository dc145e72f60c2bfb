# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Formulas between seconds and the figures that are reported."""

from __future__ import annotations

GEMM_OPERATIONS = 2  # one multiplication and one addition for each of n³ products


def gemm_teraflops(size: int, seconds: float) -> float:
    """Return TFLOP/s of the product of two square matrices."""
    return GEMM_OPERATIONS * size**3 / seconds / 1e12


def gigabytes_per_second(size: int, seconds: float) -> float:
    """Return GB/s, 10⁹ bytes."""
    return size / seconds / 1e9


def bus_factor(operation: str, ranks: int) -> float:
    """Return the bus bandwidth as a share of bytes / time (NVIDIA/nccl-tests, doc/PERFORMANCE.md, section Summary).

    The bytes of all_gather and reduce_scatter are those of the whole array, over all ranks.
    """
    if operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if operation in ("all_gather", "reduce_scatter"):
        return (ranks - 1) / ranks
    raise ValueError(f"No formula for {operation}")
