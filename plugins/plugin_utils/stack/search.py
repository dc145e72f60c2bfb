# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The search: fill every slot so that no rule objects, preferring early candidates of early slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .judge import Judge, Session
from .libraries import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver
from .model import Candidate, Problem, Slot
from .rule import Rule


class Choice(NamedTuple):
    """A candidate in its slot."""

    slot: Slot
    candidate: Candidate


class Demand(NamedTuple):
    """That a slot be filled, and, when because is given, with something that goes together with it."""

    slot: Slot
    because: Choice | None = None


class Provider(AbstractProvider):
    """resolvelib's view of a problem: slots are its identifiers, demands its requirements."""

    def __init__(self, judge: Judge, slots: list[Slot], pools: Mapping[Slot, list[Candidate]]):
        self.judge, self.slots, self.pools = judge, slots, pools

    def identify(self, requirement_or_candidate):
        return requirement_or_candidate.slot

    def get_preference(self, identifier, resolutions, candidates, information, backtrack_causes):
        return self.slots.index(identifier)

    def find_matches(self, identifier, requirements, incompatibilities):
        demands, bad = list(requirements[identifier]), {one.candidate for one in incompatibilities[identifier]}
        choices = (Choice(identifier, one) for one in self.pools[identifier] if one not in bad)
        return [one for one in choices if all(self.is_satisfied_by(demand, one) for demand in demands)]

    def is_satisfied_by(self, requirement, candidate):
        return requirement.because is None or self.judge.accepts(requirement.because.candidate, candidate.candidate)

    def get_dependencies(self, candidate):
        return [Demand(slot, candidate) for slot in self.slots if self.judge.related(slot, candidate.slot)]


def supported(judge: Judge, pools: dict[Slot, list[Candidate]]) -> bool:
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


def solve(session: Session, problem: Problem, rules: Iterable[Rule] | None = None) -> dict[Slot, Candidate] | None:
    """The preferred way to fill every slot, or None when there is none."""
    judge = Judge(session, problem, rules)
    if not judge.accepts():
        return None
    slots = problem.slots()
    pools = {slot: [one for one in session.candidates(problem, slot) if judge.accepts(one)] for slot in slots}
    if not supported(judge, pools):
        return None
    resolver = Resolver(Provider(judge, slots, pools), BaseReporter())
    try:
        result = resolver.resolve([Demand(slot) for slot in slots], max_rounds=20000)
    except ResolutionImpossible:
        return None
    return {slot: choice.candidate for slot, choice in result.mapping.items()}
