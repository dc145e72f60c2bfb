# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Geometry of the throughput picture: bars in percent of its width, so that text keeps its size on any screen."""

from __future__ import annotations

from dataclasses import dataclass

from ..problems.phrases import plural, quantity
from .model import Scaling

ROW = 76
BAR = 20


@dataclass(frozen=True)
class Stroke:
    """One bar with its labels; lengths in percent of the picture's width, heights in CSS pixels."""

    top: int
    length: float
    linear: float | None  # where perfect scaling would end; absent for the smallest size, which defines it
    size: str
    throughput: str
    growth: str  # empty for the smallest size


@dataclass(frozen=True)
class Chart:
    """The picture of one script's throughput."""

    title: str
    text: str  # the same in words, for who cannot see it
    height: int
    strokes: tuple[Stroke, ...]
    caveat: str  # what its figures do not say


def chart(scaling: Scaling) -> Chart:
    """Draw the picture of one script: the longest bar or linear mark fills the width."""
    base = scaling.sizes[0]
    linear = [base.samples_per_second * size.processes / base.processes for size in scaling.sizes]
    full = max([*linear, *(size.samples_per_second for size in scaling.sizes)])
    strokes = []
    for position, size in enumerate(scaling.sizes):
        strokes.append(
            Stroke(
                top=position * ROW,
                length=round(100 * size.samples_per_second / full, 2),
                linear=round(100 * linear[position] / full, 2) if position else None,
                size=f"{plural(size.nodes, 'node')}, {plural(size.processes, 'process')}",
                throughput=f"{quantity(size.samples_per_second)} samples/s",
                growth=f"{size.speedup:.2f} times the throughput, efficiency {size.efficiency:.0%}" if position else "",
            )
        )
    return Chart(
        title=f"Throughput of {scaling.script}",
        text="; ".join(_sentence(stroke) for stroke in strokes) + ".",
        height=len(strokes) * ROW,
        strokes=tuple(strokes),
        caveat=scaling.caveat,
    )


def _sentence(stroke: Stroke) -> str:
    return f"{stroke.size}: {stroke.throughput}" + (f", {stroke.growth}" if stroke.growth else "")
