# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A record of a fault in the input. Its sentence is made in text.py, for the user only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Problem:
    """One problem: a code, what it is about (a host, a variable, an address), and what its sentence names."""

    code: str
    subject: str
    detail: Mapping[str, Any] = field(default_factory=dict)


class ProblemError(Exception):
    """Input that cannot be meant, with the problems that make it so."""

    def __init__(self, *problems: Problem):
        super().__init__(", ".join(problem.code for problem in problems))
        self.problems = problems


def refuse(problems: Iterable[Problem]) -> None:
    """Raise ProblemError if there are any problems."""
    found = tuple(problems)
    if found:
        raise ProblemError(*found)
