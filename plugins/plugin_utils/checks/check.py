# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One check: what was expected on a node, what was measured, why they differ, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..documents.check import STATUSES
from ..problems.sentence import Sentence

Check = dict[str, str]

LEFT_OUT = "verify_health_skip_checks leaves it out"
PLAY = "see the play's output above, which says why"
DETAILS = "; "  # between two causes, and between two remedies


def check(
    name: str, category: str, expected: Any, measured: Any, status: str, reason: str = "", fix: str = ""
) -> Check:
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
        "fix": fix,
    }


def compared(
    name: str, category: str, expected: Any, measured: Any, agrees: bool | None, reason: str = "", fix: str = ""
) -> Check:
    """Return a check that passed or failed, or is unknown where ``agrees`` is None; one that passed keeps neither reason nor fix."""
    status = "unknown" if agrees is None else "passed" if agrees else "failed"
    why = ("", "") if agrees else (reason, fix)
    return check(name, category, expected, "not known" if measured is None else measured, status, *why)


def skipped(name: str, category: str, expected: Any, reason: str, fix: str = "") -> Check:
    return check(name, category, expected, "", "skipped", reason, fix)


def told(sentences: Iterable[Sentence]) -> tuple[str, str]:
    """Return the reason and the fix of a check in which several things are wrong, each once."""
    found = list(sentences)
    return joined(one.what for one in found), joined(one.fix for one in found)


def joined(texts: Iterable[str]) -> str:
    """Return several causes, or several remedies, in one line, each once."""
    return DETAILS.join(dict.fromkeys(filter(None, texts)))


def on_node(node: str, checks: Iterable[Check]) -> list[Check]:
    return [{**entry, "node": node} for entry in checks]


def yes_no(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"
