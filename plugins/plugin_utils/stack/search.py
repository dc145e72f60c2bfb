# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The search: fill every slot so that no rule objects, preferring early candidates of early slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import NamedTuple

from . import rules_frameworks, rules_host, rules_pairs  # noqa: F401 (they register their rules)
from .candidates import candidates
from .libraries import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver
from .model import Candidate, Problem, Slot
from .rule import REGISTRY, Context, Rule
from .tables import Tables


class Choice(NamedTuple):
    """A candidate in its slot."""

    slot: Slot
    candidate: Candidate


class Demand(NamedTuple):
    """That a slot be filled, and, when because is given, with something that goes together with it."""

    slot: Slot
    because: Choice | None = None


class Judge:
    """Applies the rules of one problem; remembers verdicts, as the search asks the same pairs again and again."""

    def __init__(self, tables: Tables, problem: Problem, rules: Iterable[Rule] | None = None):
        self.context = Context(
            tables,
            problem.accelerator,
            problem.wheels,
            frozenset(problem.wishes),
            problem.forward_compat,
        )
        self.facts = problem.facts()
        self.rules = [
            rule
            for rule in (REGISTRY if rules is None else rules)
            if not rule.needs or rule.needs in problem.frameworks
        ]
        self._by_kinds: dict[tuple[str, ...], list[Rule]] = {}
        self._verdicts: dict[tuple[Candidate, ...], bool] = {}

    def about(self, *kinds: str) -> list[Rule]:
        """The rules whose choices are exactly these components."""
        if kinds not in self._by_kinds:
            self._by_kinds[kinds] = [rule for rule in self.rules if sorted(rule.choices) == sorted(kinds)]
        return self._by_kinds[kinds]

    def reasons(self, rule: Rule, *chosen: Candidate) -> Iterable[str]:
        """Why a rule objects to these candidates, for every combination of the facts it looks at."""
        by_kind = {one.component: [one] for one in chosen}
        pools = [by_kind.get(kind) or self.facts.get(kind, []) for kind in rule.scope]
        return filter(None, (rule.check(self.context, *combination) for combination in product(*pools)))

    def accepts(self, *chosen: Candidate) -> bool:
        verdict = self._verdicts.get(chosen)
        if verdict is None:
            rules = self.about(*(one.component for one in chosen))
            verdict = not any(reason for rule in rules for reason in self.reasons(rule, *chosen))
            self._verdicts[chosen] = self._verdicts[chosen[::-1]] = verdict
        return verdict

    def facts_agree(self) -> bool:
        return self.accepts()

    def related(self, one: Slot, other: Slot) -> bool:
        """Whether a rule looks at both slots, and they can see each other."""
        alone = one.environment and other.environment and one.environment != other.environment
        return one != other and not alone and bool(self.about(one.component, other.component))


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


def solve(tables: Tables, problem: Problem, rules: Iterable[Rule] | None = None) -> dict[Slot, Candidate] | None:
    """The preferred way to fill every slot, or None when there is none."""
    judge = Judge(tables, problem, rules)
    if not judge.facts_agree():
        return None
    slots = problem.slots()
    pools = {slot: [one for one in candidates(tables, problem, slot) if judge.accepts(one)] for slot in slots}
    if not supported(judge, pools):
        return None
    resolver = Resolver(Provider(judge, slots, pools), BaseReporter())
    try:
        result = resolver.resolve([Demand(slot) for slot in slots], max_rounds=20000)
    except ResolutionImpossible:
        return None
    return {slot: choice.candidate for slot, choice in result.mapping.items()}
