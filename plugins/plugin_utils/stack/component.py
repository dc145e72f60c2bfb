# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a component is: all that the resolver has to know of one part of a stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .model import AnyCandidate, Problem
from .rule import Rules
from .tables import Tables

# What else is planned in the same environment, by component.
Beside = Mapping[str, AnyCandidate]


def _nothing(problem: Problem, one: AnyCandidate) -> list[str]:
    return []


def _all_known(problem: Problem, one: AnyCandidate, beside: Beside) -> Iterable[str]:
    return ()


@dataclass(frozen=True, eq=False)
class Component:
    """One part of a stack that is chosen; compared by identity.

    name: its slot, and the wish for its version. form: the type of its candidates, which rules name. reads: the wishes
    that its candidates depend on. candidates: what its slot could hold as far as the wishes allow, the preferred first.
    rules: those that it owns; a rule about two components belongs to the one that depends on the other.

    framework: whether it lives in environments and is planned where it is asked for. default: whether it is planned
    where no framework is asked for. beside: the frameworks it is compiled for, one of which it lives beside.
    required: whether it is never left out where there is a slot for it.

    reason: why a candidate was chosen; without one, that it was asked for or who needs it. uses: what it may ask for on
    the host. warnings: what to keep an eye on. unknowns: limits of a candidate that nobody verified; system: columns of
    a distribution's row that its rules look at.
    """

    name: str
    form: Any
    reads: tuple[str, ...]
    candidates: Callable[[Tables, Problem], list[AnyCandidate]]
    rules: Rules
    framework: bool = False
    default: bool = False
    beside: tuple[str, ...] = ()
    required: bool = False
    reason: Callable[[Tables, Problem, AnyCandidate], str] | None = None
    uses: tuple[str, ...] = ()
    warnings: Callable[[Problem, AnyCandidate], list[str]] = _nothing
    unknowns: Callable[[Problem, AnyCandidate, Beside], Iterable[str]] = _all_known
    system: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[int, bool]:
        """Where it stands among others when one after the other is told: frameworks, the host, what is compiled."""
        return (2 if self.beside else int(not self.framework), not self.default)
