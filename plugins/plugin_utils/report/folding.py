# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Equal things said once: what keeps the page short when a cluster has a thousand nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeVar

from ...module_utils.machine.topology import natural_key
from ..documents.check import CLUSTER, STATUSES, Check
from ..problems.phrases import hostlist, plural
from .comparisons import differences
from .health import Health
from .machine import Machine
from .model import Description, Node, Report
from .picture import Picture, draw

_Value = TypeVar("_Value")
_LABEL_LENGTH = 100
# Widths of a machine's pictures: what the page leaves on a desktop, and on a phone of 375 pixels.
WIDE, NARROW = 1020, 341


@dataclass(frozen=True)
class Kind:
    """Nodes of which the same is true."""

    nodes: tuple[Node, ...]
    description: Description

    @property
    def label(self) -> str:
        """Their names, short enough for a heading."""
        return label([node.name for node in self.nodes])

    @property
    def differences(self) -> int:
        """Items which are not as planned."""
        return differences(self.description.items)


@dataclass(frozen=True)
class MachineGroup:
    """Nodes whose GPUs are equally connected and equally well."""

    nodes: tuple[str, ...]
    machine: Machine
    health: Health
    pictures: tuple[Picture, ...]  # for a wide screen, for a phone

    @property
    def label(self) -> str:
        """Return the nodes, short enough for a heading."""
        return label(self.nodes)


@dataclass(frozen=True)
class Outcome:
    """One check with the same result on several nodes."""

    check: Check
    nodes: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return the nodes, short enough for a table cell."""
        return label(self.nodes)


@dataclass(frozen=True)
class CheckGroup:
    """Nodes whose checks all had the same results."""

    nodes: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def label(self) -> str:
        """Return the nodes, short enough for a heading."""
        return label(self.nodes)

    @property
    def counts(self) -> dict[str, int]:
        """Number of checks by status, only those that occur."""
        counted = Counter(check.status for check in self.checks)
        return {status: counted[status] for status in STATUSES if counted[status]}

    @property
    def categories(self) -> list[tuple[str, list[Check]]]:
        """Checks by category, those with the worst result first."""
        grouped = groupby(self.checks, key=lambda check: check.category)
        found = [(category, list(checks)) for category, checks in grouped]
        return sorted(found, key=lambda pair: _badness(pair[1]))


def label(names: Iterable[str]) -> str:
    """Fold node names; where that stays long, give the first two and how many more."""
    ordered = sorted(names, key=natural_key)
    folded = hostlist(ordered)
    if len(folded) <= _LABEL_LENGTH or len(ordered) <= 3:
        return folded
    return f"{ordered[0]}, {ordered[1]} and {plural(len(ordered) - 2, 'other node')}"


def kinds(report: Report) -> list[Kind]:
    """Group nodes with equal descriptions; kinds with differences first, then the largest."""
    found = [Kind(tuple(nodes), described) for described, nodes in _fold(report.nodes, lambda node: node.description)]
    return sorted(found, key=lambda kind: (kind.differences == 0, -len(kind.nodes)))


def machines(report: Report) -> list[MachineGroup]:
    """Group equal machines, drawn; those that are not well first, then the largest group."""
    measured = [node for node in report.nodes if node.machine]
    found = _fold(measured, lambda node: (node.machine, node.health))
    groups = [
        MachineGroup(
            tuple(node.name for node in nodes),
            machine,
            health,
            (draw(machine, WIDE), draw(machine, NARROW, stacked=True)),
        )
        for (machine, health), nodes in found
    ]
    return sorted(groups, key=lambda group: (group.health.verdict == "ok", -len(group.nodes)))


def attention(report: Report) -> list[Outcome]:
    """Group failed and unknown checks by their outcome; failed first, then the most common."""
    wanted = [check for check in report.checks if check.status in ("failed", "unknown")]
    outcomes = [
        Outcome(key, tuple(check.node for check in checks))
        for key, checks in _fold(wanted, lambda check: replace(check, node=""))
    ]
    return sorted(outcomes, key=lambda outcome: (outcome.check.status != "failed", -len(outcome.nodes)))


def check_groups(report: Report) -> list[CheckGroup]:
    """Group nodes with equal results, the cluster's own checks as a group; the worst first."""
    folded = _fold(report.nodes, lambda node: tuple(replace(check, node="") for check in node.checks))
    found = [CheckGroup(tuple(node.name for node in nodes), checks) for checks, nodes in folded if checks]
    if report.cluster_checks:
        found.append(CheckGroup((CLUSTER,), report.cluster_checks))
    return sorted(found, key=lambda group: _badness(group.checks))


def by_category(report: Report) -> list[tuple[str, dict[str, int]]]:
    """Number of checks by category and status."""
    counted = Counter((check.category, check.status) for check in report.checks)
    categories = dict.fromkeys(check.category for check in report.checks)
    return [(category, {status: counted[category, status] for status in STATUSES}) for category in categories]


def _badness(checks: Iterable[Check]) -> int:
    """Sort key: failed first, then unknown; a skipped check is no worse than a passed one."""
    order = {"failed": 0, "unknown": 1}
    return min(order.get(check.status, 2) for check in checks)


def _fold(values: Iterable[_Value], key: Callable[[_Value], Hashable]) -> list[tuple[Any, list[_Value]]]:
    groups: dict[Hashable, list[_Value]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return list(groups.items())
