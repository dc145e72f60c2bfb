# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compute how training throughput grows with ranks and nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..documents.benchmark import Benchmark, Document, Measurement
from ..documents.benchmark import Run as BenchmarkRun

RUNS = ("gpu", "node", "nodes")


@dataclass(frozen=True)
class Point:
    """Throughput of a given number of ranks. efficiency: the growth in throughput, divided by the growth in ranks."""

    nodes: int
    ranks: int
    images_per_second: float
    speedup: float
    efficiency: float


@dataclass(frozen=True)
class Curve:
    """Throughput of one model trained in one way, fewest ranks first."""

    model: str
    arm: str
    device: str
    points: tuple[Point, ...]


def curves(benchmark: Benchmark) -> tuple[Curve, ...]:
    """Return a curve for each model and arm that was measured; of nodes that ran alone, the first one is on it."""
    found: dict[tuple[str, str, str], dict[tuple[int, int], float]] = {}
    for run, document in _ordered(benchmark):
        for one in document.measurements:
            if one.name == "training" and one.value:
                sizes = found.setdefault(_series(one), {})
                sizes.setdefault((document.world_size, len(run.nodes)), one.value)
    return tuple(Curve(*series, tuple(_points(sizes))) for series, sizes in found.items())


def _ordered(benchmark: Benchmark) -> Iterator[tuple[BenchmarkRun, Document]]:
    for name in RUNS:
        yield from benchmark.documents(name)


def _series(found: Measurement) -> tuple[str, str, str]:
    return str(found.case.get("model", "")), str(found.case.get("arm", "")), found.device


def _points(sizes: dict[tuple[int, int], float]) -> Iterator[Point]:
    (least, _nodes), base = min(sizes.items())
    for (ranks, nodes), value in sorted(sizes.items()):
        speedup = value / base
        yield Point(nodes, ranks, value, speedup, speedup * least / ranks)
