# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver's answer: a stack, or why there is none and what to ask for instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from .model import Part


class Conflict(TypedDict):
    """A smallest set of constraints and facts that clash."""

    rule: str
    rules: list[str]
    between: list[str]  # names of the constraints and facts
    values: dict[str, str]
    reasons: list[str]  # one sentence for each rule
    reason: str
    alternatives: list[Mapping[str, str | None]]  # what to change, each enough for the whole request; None: left out
    suggestion: str | None
    source: str


class Suggestion(TypedDict):
    """The nearest request that works."""

    request: dict[str, str]
    changes: dict[str, str | None]  # None: given up
    text: str


class Answer(TypedDict):
    """stack is None where there are conflicts; suggestion is None where there is a stack, or nothing works."""

    stack: Part | None
    conflicts: list[Conflict]
    suggestion: Suggestion | None
    warnings: list[str]
