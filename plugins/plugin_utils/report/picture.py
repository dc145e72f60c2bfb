# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Geometry of the picture of a machine: a pure function of the machine and a width, in CSS pixels.

Wide, the GPUs stand in one row and their NVLinks above them; stacked (for a phone, or where the row would not fit), they
stand in one column with the NVLinks to the left. What is near is inside one box.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .lettering import Text, cut, wrapped
from .lettering import width as wide
from .machine import Device, Group, Machine, devices
from .wiring import Anchor, Line, Wiring, wire

PAD, GAP, FOOT, LINE = 6, 7, 17, 14
GPU_LEAST, GPU_MOST, NIC_LEAST = 76, 150, 92  # widths


@dataclass(frozen=True)
class Box:
    kind: str  # numa | near | gpu | nic | fabric | switch
    left: float
    top: float
    width: float
    height: float
    fault: bool = False


@dataclass(frozen=True)
class Picture:
    width: float
    height: float
    stacked: bool
    boxes: tuple[Box, ...]  # outer ones first
    lines: tuple[Line, ...]
    texts: tuple[Text, ...]


@dataclass
class _Sheet:
    """The elements drawn so far."""

    stacked: bool
    unit: float = GPU_MOST  # width of a GPU where they stand in a row
    lines: int = 0  # of text in each of them
    boxes: list[Box] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    gpus: list[tuple[Device, Box]] = field(default_factory=list)


def draw(machine: Machine, width: float, stacked: bool = False) -> Picture:
    """Draw the picture, at most so wide; stacked also where the GPUs do not fit into one row."""
    room = width - sum(_margins(group) for group in machine.groups) - GAP * (len(machine.groups) - 1)
    unit = min(GPU_MOST, room / sum(_columns(group) for group in machine.groups))
    stacked = stacked or unit < GPU_LEAST
    wiring = wire(machine, stacked)
    if stacked:
        sheet = _Sheet(True)
        top, left, used = 0.0, wiring.depth, width
        for group in machine.groups:
            top += _group(sheet, group, left, top, width - left) + GAP
        height = top - GAP
    else:
        gpus = [one for group in machine.groups for one in devices(group) if one.kind == "gpu"]
        lines = max(len(_written(one, unit, False)) for one in gpus)
        sheet = _Sheet(False, unit, lines)
        # Drawn once to see which NUMA node is the highest: all get its height.
        tallest = max(_group(_Sheet(False, unit, lines), group, 0, 0, _span(group, unit)) for group in machine.groups)
        left = 0.0
        for group in machine.groups:
            _group(sheet, group, left, wiring.depth, _span(group, unit), tallest)
            left += _span(group, unit) + GAP
        used, height = left - GAP, wiring.depth + tallest
    return _with_links(sheet, machine, wiring, used, height)


def _with_links(sheet: _Sheet, machine: Machine, wiring: Wiring, width: float, height: float) -> Picture:
    anchors = [Anchor(device, _middle(box, sheet.stacked), _edge(box, sheet.stacked)) for device, box in sheet.gpus]
    lines, labels = wiring.lines(anchors)
    boxes: Iterable[Box] = ()
    texts = [_link_text(label) for label in labels]
    if machine.fabric:
        boxes, more = _fabric(machine, wiring.thickness, width, height, sheet.stacked)
        texts += more
    return Picture(
        round(width, 1), round(height, 1), sheet.stacked, (*boxes, *sheet.boxes), tuple(lines), (*sheet.texts, *texts)
    )


def _link_text(label: tuple[float, float, str, bool]) -> Text:
    x, y, text, fault = label
    return Text("links fault" if fault else "links", x, y, text, "middle")


def _middle(box: Box, stacked: bool) -> tuple[float, float]:
    """Return where along the row (or column) the GPU lies: (start, end)."""
    return (box.top, box.top + box.height) if stacked else (box.left, box.left + box.width)


def _edge(box: Box, stacked: bool) -> float:
    """Return the distance of the GPU's near edge from the side of the links."""
    return box.left if stacked else box.top


def _fabric(
    machine: Machine, thickness: float, width: float, height: float, stacked: bool
) -> tuple[list[Box], list[Text]]:
    """Draw the bar of NVSwitches along the side of the links."""
    length = height if stacked else width
    count = machine.switches
    outer = Box("fabric", 0, 0, thickness, height) if stacked else Box("fabric", 0, 0, width, thickness)
    boxes, texts = [outer], []
    if count > 1:
        cell = (length - GAP * (count + 1)) / count
        for number in range(count):
            start = GAP + number * (cell + GAP)
            boxes.append(
                Box("switch", 4, start, thickness - 8, cell)
                if stacked
                else Box("switch", start, 4, cell, thickness - 8)
            )
            if cell >= wide("tag", "NVSwitch"):
                texts.append(_along("tag", start + cell / 2, thickness / 2, "NVSwitch", stacked))
    if not texts:
        texts = [_along("tag", length / 2, thickness / 2, machine.fabric_label, stacked)]
    return boxes, texts


def _along(kind: str, along: float, across: float, text: str, stacked: bool) -> Text:
    """Text in the middle of the bar; turned where the bar stands upright."""
    if stacked:
        return Text(kind, across + 4, along, text, "middle", turned=True)
    return Text(kind, along, across + 4, text, "middle")


def _tops(group: Group) -> list[Device | Group]:
    return [one for one in group.members if any(device.kind == "gpu" for device in devices(one))]


def _columns(item: Device | Group) -> int:
    """Return the number of GPUs that stand side by side in it; what has none is as wide as one."""
    return 1 if isinstance(item, Device) else sum(_columns(one) for one in _tops(item)) or 1


def _margins(item: Device | Group) -> float:
    """Return the width that a group needs in addition to its GPUs."""
    if isinstance(item, Device):
        return 0
    tops = _tops(item)
    return 2 * PAD + sum(_margins(one) for one in tops) + GAP * max(len(tops) - 1, 0)


def _span(item: Device | Group, unit: float) -> float:
    return _columns(item) * unit + _margins(item)


def _group(sheet: _Sheet, group: Group, left: float, top: float, width: float, least: float = 0) -> float:
    """Draw a group at this place; its height."""
    place, numa = len(sheet.boxes), group.code == "NUMA"
    inner, x, y = width - 2 * PAD, left + PAD, top + PAD
    tops = _tops(group)
    rest = [one for one in group.members if one not in tops]
    if sheet.stacked:
        for one in tops:
            y += _item(sheet, one, x, y, inner) + GAP
    elif tops:
        heights = []
        for one in tops:
            heights.append(_item(sheet, one, x, y, _span(one, sheet.unit)))
            x += _span(one, sheet.unit) + GAP
        y += max(heights) + GAP
    for row in _rows(rest, inner):
        share = (inner - GAP * (len(row) - 1)) / len(row)
        heights = [_item(sheet, one, left + PAD + at * (share + GAP), y, share) for at, one in enumerate(row)]
        y += max(heights) + GAP
    foot = FOOT + (LINE if numa and group.note else 0)
    bottom = max(y - GAP + foot + 5, top + least)
    _label(sheet, group, left + PAD, bottom - 7, inner)
    sheet.boxes.insert(place, Box("numa" if numa else "near", left, top, width, bottom - top))
    return bottom - top


def _label(sheet: _Sheet, group: Group, x: float, y: float, room: float) -> None:
    """At the foot of the box, because the links arrive at its head."""
    if group.code != "NUMA":
        sheet.texts.append(Text("tag", x, y, group.label))
        return
    if group.note:
        sheet.texts.append(cut("detail", x, y, group.note, room))
        y -= LINE
    sheet.texts.append(cut("name", x, y, group.label, room))


def _rows(items: list[Device | Group], room: float) -> Iterable[list[Device | Group]]:
    """Adapters in rows as long as fit; a group of them has a row of its own."""
    most = max(1, int((room + GAP) // (NIC_LEAST + GAP)))
    row: list[Device | Group] = []
    for item in items:
        if row and (isinstance(item, Group) or isinstance(row[0], Group) or len(row) == most):
            yield row
            row = []
        row.append(item)
    if row:
        yield row


def _item(sheet: _Sheet, item: Device | Group, left: float, top: float, width: float) -> float:
    if isinstance(item, Group):
        return _group(sheet, item, left, top, width)
    written = _written(item, width, sheet.stacked)
    # Side by side boxes have equal heights, whatever is to be said in them.
    lines = max(len(written), sheet.lines if item.kind == "gpu" else 0)
    box = Box(item.kind, left, top, width, 25 + LINE * lines, bool(item.fault))
    sheet.boxes.append(box)
    if item.kind == "gpu":
        sheet.gpus.append((item, box))
    sheet.texts.append(cut("name", left + 6, top + 17, item.title, width - 10))
    for number, (kind, text) in enumerate(written):
        sheet.texts.append(cut(kind, left + 6, top + 32 + LINE * number, text, width - 10))
    return box.height


def _written(device: Device, width: float, stacked: bool) -> list[tuple[str, str]]:
    """Lines below a device's name: (kind, text). Where GPUs stand in a column there is room for all in one line."""
    details = [" · ".join(device.details)] if stacked and device.kind == "gpu" else list(device.details)
    lines = [("fault", device.fault), *(("detail", text) for text in details)]
    return [(kind, part) for kind, text in lines if text for part in wrapped(kind, text, width - 10)]
