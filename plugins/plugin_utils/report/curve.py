# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Geometry of a scaling curve: both axes logarithmic, so that perfect scaling is a straight line from the first point."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..benchmark.scaling import Curve, Point
from ..benchmark.words import model
from ..problems.phrases import plural, quantity

TOP, BOTTOM = 40, 220  # CSS pixels between which points lie
HEIGHT = 270
LEFT, RIGHT = 8.0, 92.0  # percent of the width


@dataclass(frozen=True)
class Dot:
    """One point with its labels; x in percent of the width, y in CSS pixels."""

    x: float
    y: float
    ranks: str
    throughput: str
    efficiency: str  # empty for the first, which defines it


@dataclass(frozen=True)
class Line:
    """From one place to another."""

    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True)
class Plot:
    """The picture of one model trained in one way."""

    title: str
    text: str  # the same in words, for who cannot see it
    dots: tuple[Dot, ...]
    lines: tuple[Line, ...]
    ideal: Line
    height: int = HEIGHT


def plot(curve: Curve) -> Plot | None:
    """Draw a curve; None where it has one point."""
    points = curve.points
    if len({point.ranks for point in points}) < 2:
        return None
    first, last = points[0], points[-1]
    ideal = first.images_per_second * last.ranks / first.ranks
    values = [*(point.images_per_second for point in points), ideal]
    dots = tuple(
        Dot(
            x=_between(point.ranks, first.ranks, last.ranks, LEFT, RIGHT),
            y=_between(point.images_per_second, min(values), max(values), BOTTOM, TOP),
            ranks=plural(point.ranks, "rank"),
            throughput=quantity(point.images_per_second),
            efficiency=f"{point.efficiency:.0%}" if place else "",
        )
        for place, point in enumerate(points)
    )
    lines = tuple(Line(one.x, one.y, other.x, other.y) for one, other in zip(dots, dots[1:], strict=False))
    end = _between(ideal, min(values), max(values), BOTTOM, TOP)
    name = f"Throughput of {model(curve.model)}, {curve.arm} loop, images/s"
    return Plot(
        name, "; ".join(_words(point) for point in points) + ".", dots, lines, Line(dots[0].x, dots[0].y, RIGHT, end)
    )


def _between(value: float, least: float, most: float, start: float, end: float) -> float:
    """Return where a value lies between START and END, by its logarithm."""
    span = math.log(most / least)
    share = math.log(value / least) / span if span else 0.0
    return round(start + share * (end - start), 2)


def _words(point: Point) -> str:
    nodes = plural(point.nodes, "node")
    return f"{plural(point.ranks, 'rank')} on {nodes}: {quantity(point.images_per_second)} images/s, efficiency {point.efficiency:.0%}"
