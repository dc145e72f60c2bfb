# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a rule: a named function over facts and candidates that returns why they do not go together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from .model import FACTS, Kind
from .rows import Accelerator, Arch, Service
from .tables import Tables

# A check is given the context, then one candidate of each kind in its rule's scope, in the forms that their components name.
Check = TypeVar("Check", bound=Callable[..., str | None])


class Doubt(str):
    """A reason that may not hold, as the tables leave the limit empty: it counts where anything fits for certain, and is told else."""

    __slots__ = ()


@dataclass(frozen=True)
class Context:
    """The context that rules may look at in addition to the candidates they judge.

    accelerator: cuda or cpu; arch: which wheels are looked at, None for all; asked: the components the user named, of those it
    matters for; forward_compat: whether every GPU of the host may run the cuda-compat package; fabric: the services
    that the host needs for GPUs behind NVSwitches.
    """

    tables: Tables
    accelerator: Accelerator = "cuda"
    arch: Arch | None = "x86_64"
    asked: frozenset[str] = frozenset()
    forward_compat: bool = False
    fabric: frozenset[Service] = frozenset()


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule of a component, compared by identity. scope: the components it judges, in the order of its arguments after the context.

    needs: a component that must be planned for the rule to hold at all. hint: what to do about the facts in a conflict.
    """

    name: str
    scope: tuple[Kind, ...]
    check: Callable[..., str | None]
    sources: tuple[str, ...]
    needs: str | None = None
    hint: str = ""

    @cached_property
    def choices(self) -> tuple[Kind, ...]:
        """The kinds in its scope that are decided; the others are facts."""
        return tuple(kind for kind in self.scope if kind not in FACTS)


class Rules(list[Rule]):
    """The rules that a component owns, in the order they are written."""

    def __call__(
        self, name: str, *scope: Kind, sources: tuple[str, ...], needs: str | None = None, hint: str = ""
    ) -> Callable[[Check], Check]:
        """Take in a function(context, *candidates) that returns a reason for a clash, a Doubt, or None."""

        def register(check: Check) -> Check:
            self.append(Rule(name, scope, check, sources, needs, hint))
            return check

        return register
