# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One check: what was expected on a node, what was measured, and what that means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..documents.check import STATUSES

Check = dict[str, str]

LEFT_OUT = "verify_health_skip_checks leaves it out"


def check(name: str, category: str, expected: Any, measured: Any, status: str, reason: str = "") -> Check:
    """Return a check without its node, which ``on_node`` adds."""
    if status not in STATUSES:
        raise ValueError(f"check {name} has status {status}; it must be one of {', '.join(STATUSES)}")
    return {
        "name": name,
        "node": "",
        "category": category,
        "expected": str(expected),
        "measured": str(measured),
        "status": status,
        "reason": reason,
    }


def compared(name: str, category: str, expected: Any, measured: Any, agrees: bool | None, reason: str = "") -> Check:
    """Return a check that passed or failed, or is unknown where ``agrees`` is None; one that passed keeps no reason."""
    status = "unknown" if agrees is None else "passed" if agrees else "failed"
    return check(
        name, category, expected, "not known" if measured is None else measured, status, "" if agrees else reason
    )


def skipped(name: str, category: str, expected: Any, reason: str) -> Check:
    return check(name, category, expected, "", "skipped", reason)


def on_node(node: str, checks: Iterable[Check]) -> list[Check]:
    return [{**entry, "node": node} for entry in checks]


def yes_no(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"
