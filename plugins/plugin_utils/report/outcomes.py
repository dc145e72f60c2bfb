# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks folded over nodes: what did not pass, and nodes on which every check had the same result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from ..documents.check import CLUSTER, STATUSES, Check
from .folding import Said, fold, label, said
from .model import Report


@dataclass(frozen=True)
class Outcome:
    """One check with the same result on several nodes; what was expected, measured and said of it may differ."""

    check: Check
    nodes: tuple[str, ...]
    expected: tuple[Said, ...]
    measured: tuple[Said, ...]
    reason: tuple[Said, ...]
    fix: tuple[Said, ...]

    @property
    def label(self) -> str:
        """Return the nodes, short enough for a table cell."""
        return label(self.nodes)


@dataclass(frozen=True)
class CheckGroup:
    """Nodes on which every check had the same result."""

    nodes: tuple[str, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def label(self) -> str:
        """Return the nodes, short enough for a heading."""
        return label(self.nodes)

    @property
    def counts(self) -> dict[str, int]:
        """Number of checks by status, only those that occur."""
        counted = Counter(one.check.status for one in self.outcomes)
        return {status: counted[status] for status in STATUSES if counted[status]}

    @property
    def categories(self) -> list[tuple[str, list[Outcome]]]:
        """Outcomes by category, those with the worst result first."""
        grouped = groupby(self.outcomes, key=lambda one: one.check.category)
        found = [(category, list(outcomes)) for category, outcomes in grouped]
        return sorted(found, key=lambda pair: _badness(one.check for one in pair[1]))


def attention(report: Report) -> list[Outcome]:
    """Group failed and unknown checks by their outcome; failed first, then the most common."""
    wanted = [check for check in report.checks if check.status in ("failed", "unknown")]
    folded = fold(wanted, lambda check: (check.name, check.category, check.status, check.reason, check.fix))
    return sorted(
        (_outcome(checks) for _key, checks in folded), key=lambda one: (one.check.status != "failed", -len(one.nodes))
    )


def _outcome(checks: list[Check]) -> Outcome:
    """Fold one check of several nodes, which has the same result on all of them."""
    return Outcome(
        checks[0],
        tuple(dict.fromkeys(check.node for check in checks)),
        said((check.node, check.expected) for check in checks),
        said((check.node, check.measured) for check in checks),
        said((check.node, check.reason) for check in checks),
        said((check.node, check.fix) for check in checks),
    )


def check_groups(report: Report) -> list[CheckGroup]:
    """Group nodes with equal results, the cluster's own checks as a group; the worst first."""
    folded = fold(report.nodes, lambda node: tuple((one.name, one.category, one.status) for one in node.checks))
    found = [
        CheckGroup(
            tuple(node.name for node in nodes),
            tuple(_outcome(list(checks)) for checks in zip(*(node.checks for node in nodes), strict=True)),
        )
        for key, nodes in folded
        if key
    ]
    if report.cluster_checks:
        found.append(CheckGroup((CLUSTER,), tuple(_outcome([check]) for check in report.cluster_checks)))
    return sorted(found, key=lambda group: _badness(one.check for one in group.outcomes))


def by_category(report: Report) -> list[tuple[str, dict[str, int]]]:
    """Number of checks by category and status."""
    counted = Counter((check.category, check.status) for check in report.checks)
    categories = dict.fromkeys(check.category for check in report.checks)
    return [(category, {status: counted[category, status] for status in STATUSES}) for category in categories]


def _badness(checks: Iterable[Check]) -> int:
    """Sort key: failed first, then unknown; a skipped check is no worse than a passed one."""
    order = {"failed": 0, "unknown": 1}
    return min(order.get(check.status, 2) for check in checks)
