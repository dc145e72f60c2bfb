# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The search: fill every slot so that no rule objects, preferring early candidates of early slots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from .judge import Judge, Session
from .libraries import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver
from .model import AnyCandidate, Problem, Slot
from .rule import Rule


class Choice(NamedTuple):
    """A candidate in its slot."""

    slot: Slot
    candidate: AnyCandidate


class Demand(NamedTuple):
    """That a slot be filled, and, when because is given, with something that goes together with it."""

    slot: Slot
    because: Choice | None = None


if TYPE_CHECKING:
    View = AbstractProvider[Demand, Choice, Slot]
else:
    View = AbstractProvider  # generic from resolvelib 1.1 on only


class Provider(View):
    """resolvelib's view of a problem: slots are its identifiers, demands its requirements."""

    def __init__(self, judge: Judge, slots: list[Slot], pools: Mapping[Slot, list[AnyCandidate]]) -> None:
        self.judge, self.slots, self.pools = judge, slots, pools

    def identify(self, requirement_or_candidate: Demand | Choice) -> Slot:
        """Return the slot that something is about."""
        return requirement_or_candidate.slot

    def get_preference(
        self, identifier: Slot, resolutions: object, candidates: object, information: object, backtrack_causes: object
    ) -> int:
        """Return the place of a slot in the order they are decided."""
        return self.slots.index(identifier)

    def find_matches(
        self,
        identifier: Slot,
        requirements: Mapping[Slot, Iterator[Demand]],
        incompatibilities: Mapping[Slot, Iterator[Choice]],
    ) -> list[Choice]:
        """Return what could still fill a slot, the preferred first."""
        demands, bad = list(requirements[identifier]), {one.candidate for one in incompatibilities[identifier]}
        choices = (Choice(identifier, one) for one in self.pools[identifier] if one not in bad)
        return [one for one in choices if all(self.is_satisfied_by(demand, one) for demand in demands)]

    def is_satisfied_by(self, requirement: Demand, candidate: Choice) -> bool:
        """Return whether a choice goes together with what asks for its slot."""
        return requirement.because is None or self.judge.accepts(requirement.because.candidate, candidate.candidate)

    def get_dependencies(self, candidate: Choice) -> list[Demand]:
        """Return a demand on every slot that a rule looks at together with this one."""
        return [Demand(slot, candidate) for slot in self.slots if self.judge.related(slot, candidate.slot)]


def supported(judge: Judge, pools: dict[Slot, list[AnyCandidate]]) -> bool:
    """Drop candidates that nothing in some other slot goes together with; False when a slot runs empty.

    The search itself then hardly ever has to go back.
    """
    pairs = [(one, other) for one in pools for other in pools if judge.related(one, other)]
    shrunk = True
    while shrunk and all(pools.values()):
        shrunk = False
        for one, other in pairs:
            kept = [mine for mine in pools[one] if any(judge.accepts(mine, theirs) for theirs in pools[other])]
            shrunk = shrunk or len(kept) < len(pools[one])
            pools[one] = kept
    return all(pools.values())


def solve(session: Session, problem: Problem, rules: Iterable[Rule] | None = None) -> dict[Slot, AnyCandidate] | None:
    """Return the preferred way to fill every slot, or None when there is none."""
    judge = Judge(session, problem, rules)
    if not judge.accepts():
        return None
    slots = problem.slots()
    pools = {slot: [one for one in session.candidates(problem, slot) if judge.accepts(one)] for slot in slots}
    if not supported(judge, pools):
        return None
    resolver: Resolver[Demand, Choice, Slot] = Resolver(Provider(judge, slots, pools), BaseReporter())
    try:
        result = resolver.resolve([Demand(slot) for slot in slots], max_rounds=20000)
    except ResolutionImpossible:
        return None
    return {slot: choice.candidate for slot, choice in result.mapping.items()}
