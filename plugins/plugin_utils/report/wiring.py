# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVLinks in the picture of a machine: arcs between GPUs, or straight lines to a bar of switches.

All is computed along the row of GPUs and across it; only the ends know whether that row lies or stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .machine import Device, Link, Machine, devices

BAR = 32  # thickness of the bar of switches
FIRST, STEP = {True: 26, False: 30}, {True: 10, False: 15}  # heights of arcs, where the row stands and where it lies
SPREAD = 9  # between the ends of two arcs at one GPU


@dataclass(frozen=True)
class Anchor:
    """A GPU: where it begins and ends along the row, and how far its edge is from the side of the links."""

    device: Device
    along: tuple[float, float]
    edge: float

    @property
    def middle(self) -> float:
        return sum(self.along) / 2


@dataclass(frozen=True)
class Line:
    path: str
    width: float
    fault: bool = False


Label = tuple[float, float, str, bool]


def wire(machine: Machine, stacked: bool) -> Wiring:
    order = [device.name for group in machine.groups for device in devices(group) if device.kind == "gpu"]
    known = [link for link in machine.links if link.one in order and link.two in order]
    longest = max((abs(order.index(link.one) - order.index(link.two)) for link in known), default=0)
    arcs = FIRST[stacked] + STEP[stacked] * (longest - 1) + 10 if longest else 0
    thickness = BAR if machine.fabric else 0
    room = 44 if stacked else 40
    return Wiring(tuple(known), stacked, thickness, arcs, thickness + max(arcs, room if thickness else 0))


@dataclass(frozen=True)
class Wiring:
    """``depth``: the room that links and switches need next to the GPUs' boxes."""

    links: tuple[Link, ...]
    stacked: bool
    thickness: float
    arcs: float
    depth: float

    def lines(self, anchors: list[Anchor]) -> tuple[list[Line], list[Label]]:
        """Return lines and the labels on them, for GPUs in their order along the row."""
        found = [*self._arcs(anchors), *self._risers(anchors)]
        return [line for line, _label in found], [label for _line, label in found]

    def _risers(self, anchors: list[Anchor]) -> Iterable[tuple[Line, Label]]:
        """Draw the lines from each GPU to the bar of switches."""
        for anchor in anchors:
            device = anchor.device
            if self.thickness and device.links:
                path = f"M{self._at(anchor.middle, anchor.edge)}L{self._at(anchor.middle, self.thickness)}"
                fault = bool(device.faulty_links)
                text = device.faulty_links or str(device.links)
                yield (
                    Line(path, thickness(device.links), fault),
                    self._label(anchor.middle, (self.thickness + self.depth) / 2, text, fault),
                )

    def _arcs(self, anchors: list[Anchor]) -> Iterable[tuple[Line, Label]]:
        order = {anchor.device.name: position for position, anchor in enumerate(anchors)}
        ends = {name: self._ends(name, order) for name in order}
        for link in self.links:
            pair = sorted((link.one, link.two), key=order.__getitem__)
            one, two = (
                (anchors[order[name]], ends[name][other]) for name, other in zip(pair, reversed(pair), strict=True)
            )
            start, end = one[0].middle + one[1], two[0].middle + two[1]
            distance = order[pair[1]] - order[pair[0]]
            height = FIRST[self.stacked] + STEP[self.stacked] * (distance - 1)
            # A cubic curve reaches three quarters of the way to its control points.
            control, base = self.depth - height / 0.75, self.depth
            path = (
                f"M{self._at(start, one[0].edge)}L{self._at(start, base)}"
                f"C{self._at(start, control)} {self._at(end, control)} {self._at(end, base)}"
                f"L{self._at(end, two[0].edge)}"
            )
            label = self._label((start + end) / 2, base - height, str(link.count), False)
            yield Line(path, thickness(link.count)), label

    def _ends(self, name: str, order: dict[str, int]) -> dict[str, float]:
        """Return {other GPU: offset from the middle}; outer arcs enclose inner ones, so that none cross at the GPU."""
        others = {link.two if link.one == name else link.one for link in self.links if name in (link.one, link.two)}
        here = order[name]
        before = sorted((other for other in others if order[other] < here), key=lambda other: here - order[other])
        after = sorted((other for other in others if order[other] > here), key=lambda other: here - order[other])
        placed = [*before, *after]
        spread = min(SPREAD, (32 if self.stacked else 60) / max(len(placed), 1))
        return {other: (position - (len(placed) - 1) / 2) * spread for position, other in enumerate(placed)}

    def _at(self, along: float, across: float) -> str:
        x, y = (across, along) if self.stacked else (along, across)
        return f"{x:.1f},{y:.1f}"

    def _label(self, along: float, across: float, text: str, fault: bool) -> Label:
        x, y = (across, along) if self.stacked else (along, across)
        return round(x, 1), round(y + 4, 1), text, fault


def thickness(links: int) -> float:
    """Return the width of a line in pixels: 1 link is thin, 18 are a beam."""
    return round(1 + 0.4 * min(links, 18), 1)
