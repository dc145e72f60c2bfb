# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Equal things said once: what keeps the page short when a cluster has a thousand nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ...module_utils.machine.topology import natural_key
from ..problems.phrases import hostlist, plural
from .comparisons import counts
from .health import Health
from .machine import Machine
from .model import Description, Item, Node, Report
from .picture import Picture, draw
from .results import AS_PLANNED, RESULTS

_Value = TypeVar("_Value")
_LABEL_LENGTH = 100
PARTS = 6  # of a list that stand in a cell; of a longer one the first ones
_FIRST = 3
# Widths of a machine's pictures: what the page leaves on a desktop, and on a phone of 375 pixels.
WIDE, NARROW = 1020, 341


@dataclass(frozen=True)
class Said:
    """A text, and the nodes of which it is true."""

    text: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Long:
    """A text whose end is one click away, where it is a long list; rest is empty where the whole text is the beginning."""

    beginning: str
    rest: str = ""
    count: int = 0  # of the parts in the rest


@dataclass(frozen=True)
class Kind:
    """Nodes of which the same is true. What is planned and installed is told apart from the rest, for all nodes together."""

    nodes: tuple[Node, ...]
    description: Description

    @property
    def label(self) -> str:
        """Their names, short enough for a heading."""
        return label([node.name for node in self.nodes])

    @property
    def differences(self) -> int:
        """Items that are known to differ from the plan, each once."""
        return counts({item for node in self.nodes for item in node.description.items})[0]


@dataclass(frozen=True)
class Part:
    """A part of the plan with the same result on several nodes; several parts where all that is said of them is the same."""

    item: Item
    names: tuple[str, ...]
    nodes: tuple[str, ...]
    planned: tuple[Said, ...]
    installed: tuple[Said, ...]


@dataclass(frozen=True)
class MachineGroup:
    """Nodes whose GPUs are equally connected and equally well."""

    nodes: tuple[str, ...]
    machine: Machine
    health: Health
    gpu_compute: bool
    remarks: tuple[str, ...]  # of their users
    pictures: tuple[Picture, ...]  # for a wide screen, for a phone

    @property
    def label(self) -> str:
        """Return the nodes, short enough for a heading."""
        return label(self.nodes)


def label(names: Iterable[str]) -> str:
    """Fold node names; where that stays long, give the first two and how many more."""
    ordered = sorted(names, key=natural_key)
    folded = hostlist(ordered)
    if len(folded) <= _LABEL_LENGTH or len(ordered) <= 3:
        return folded
    return f"{ordered[0]}, {ordered[1]} and {plural(len(ordered) - 2, 'other node')}"


def shortened(text: str) -> Long:
    """Fold a list of many parts."""
    return _shortened(text.split("; "), ";") or _shortened(text.split(", "), ",") or Long(text)


def _shortened(parts: list[str], mark: str) -> Long | None:
    if len(parts) <= PARTS:
        return None
    rest = f"{mark} ".join(parts[_FIRST:])
    return Long(f"{mark} ".join(parts[:_FIRST]) + mark, rest, len(parts) - _FIRST)


def said(found: Iterable[tuple[str, str]]) -> tuple[Said, ...]:
    """Return (node, text) as texts with their nodes, the most common first."""
    texts = fold(found, lambda pair: pair[1])
    folded = [Said(text, tuple(node for node, _text in pairs)) for text, pairs in texts]
    return tuple(sorted(folded, key=lambda one: -len(one.nodes)))


def kinds(report: Report) -> list[Kind]:
    """Group nodes with equal descriptions; kinds with differences first, then the largest."""
    folded = fold(report.nodes, lambda node: replace(node.description, items=()))
    found = [Kind(tuple(nodes), described) for described, nodes in folded]
    return sorted(found, key=lambda kind: (kind.differences == 0, -len(kind.nodes)))


def parts(report: Report) -> list[Part]:
    """Fold what is planned and installed over all nodes: differences first, otherwise in the order of the roles.

    Differences of which the same is said are one part, such as packages none of which is there.
    """
    items = [(node.name, item) for node in report.nodes for item in node.description.items]
    folded = fold(items, lambda pair: (pair[1].component, pair[1].name, pair[1].result))
    found = [
        Part(
            pairs[0][1],
            (pairs[0][1].name,),
            tuple(dict.fromkeys(node for node, _item in pairs)),
            said((node, item.planned) for node, item in pairs),
            said((node, item.installed) for node, item in pairs),
        )
        for _key, pairs in folded
    ]
    alike = fold(found, _alike)
    order = list(RESULTS.values())
    joined = (replace(same[0], names=tuple(name for part in same for name in part.names)) for _key, same in alike)
    return sorted(joined, key=lambda part: order.index(part.item.result))


def _alike(part: Part) -> Hashable:
    """Return the key that differences of one row have in common; what is as planned is a row of its own."""
    own = part.names if part.item.result == AS_PLANNED else ()
    return (part.item.component, part.item.result, part.nodes, part.planned, part.installed, own)


def notes(report: Report) -> tuple[Said, ...]:
    """Return the notes that are worth telling and no fault, each once."""
    return said((node.name, note) for node in report.nodes for note in node.health.notes)


def machines(report: Report) -> list[MachineGroup]:
    """Group equal machines, drawn; those that are not well first, then the largest group."""
    measured = [node for node in report.nodes if node.machine]
    found = fold(measured, lambda node: (node.machine, replace(node.health, notes=()), node.gpu_compute))
    groups = [
        MachineGroup(
            tuple(node.name for node in nodes),
            machine,
            health,
            gpu_compute,
            tuple(dict.fromkeys(node.description.remark for node in nodes if node.description.remark)),
            (draw(machine, WIDE), draw(machine, NARROW, stacked=True)),
        )
        for (machine, health, gpu_compute), nodes in found
    ]
    return sorted(groups, key=lambda group: (group.health.verdict == "ok", -len(group.nodes)))


def fold(values: Iterable[_Value], key: Callable[[_Value], Hashable]) -> list[tuple[Any, list[_Value]]]:
    """Return (key, the values that have it), in the order of their first ones."""
    groups: dict[Hashable, list[_Value]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return list(groups.items())
