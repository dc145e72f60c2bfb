# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A check: one claim about a node, or about the cluster, and what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

CLUSTER = "cluster"  # stands for the node in checks of all nodes together
STATUSES = ("failed", "unknown", "skipped", "passed")  # most urgent first
CATEGORIES = ("coherence", "health", "environment", "network", "collectives", "training", "benchmark")


@dataclass(frozen=True)
class Check:
    """status: one of STATUSES; reason: why it did not pass; fix: what to do, an imperative. Both are empty where it passed."""

    name: str = ""
    node: str = ""
    category: str = ""
    expected: str = ""
    measured: str = ""
    status: str = ""
    reason: str = ""
    fix: str = ""

    @property
    def line(self) -> str:
        """Return both in one line, for programs that have one field for them."""
        return "; ".join(filter(None, (self.reason, self.fix)))


def verdict(statuses: Iterable[str]) -> str:
    """Return failed, incomplete or passed: what is unknown is not success, and neither is nothing at all."""
    found = set(statuses)
    if "failed" in found:
        return "failed"
    return "passed" if "passed" in found and "unknown" not in found else "incomplete"
