# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applying the rules to a problem, and remembering what they said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product

from . import rules_frameworks, rules_host, rules_pairs
from .candidates import READS, candidates
from .model import AnyCandidate, Kind, Problem, Slot
from .rule import REGISTRY, Context, Rule
from .tables import Tables

# Importing these registers their rules.
RULE_MODULES = (rules_frameworks, rules_host, rules_pairs)


class Session:
    """What stays the same from question to question: candidates, and what rules said of them."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._candidates: dict[tuple[object, ...], list[AnyCandidate]] = {}
        self._facts: dict[tuple[Kind, str, str], AnyCandidate] = {}
        # Keys: the name of a rule and what it looked at; what the rules hold for and look at.
        self.verdicts: dict[Context, dict[tuple[str | AnyCandidate, ...], str | None]] = {}
        self.pairs: dict[tuple[object, ...], dict[tuple[AnyCandidate, ...], bool]] = {}

    def candidates(self, problem: Problem, slot: Slot) -> list[AnyCandidate]:
        """Return the candidates for a slot; the same ones for problems that do not differ in what makes them."""
        wishes = tuple(problem.wishes.get(name) for name in READS[slot.component])
        key = (
            slot.component,
            wishes,
            id(problem.os),
            problem.accelerator,
            problem.suites,
            problem.permitted_build,
            problem.owner,
        )
        if key not in self._candidates:
            self._candidates[key] = candidates(self.tables, problem, slot)
        return self._candidates[key]

    def facts(self, problem: Problem) -> dict[Kind, list[AnyCandidate]]:
        """Return the facts of a problem; equal facts of other problems are the same candidates."""
        return {
            kind: [self._facts.setdefault((kind, one.version, _generation(one)), one) for one in found]
            for kind, found in problem.facts().items()
        }

    def context(self, problem: Problem) -> Context:
        """Return what rules may look at beside candidates."""
        asked = frozenset(problem.wishes) & {"cuda"}
        return Context(self.tables, problem.accelerator, problem.wheels, asked, problem.forward_compat, problem.fabric)


def _generation(one: AnyCandidate) -> str:
    """Return what tells GPUs apart that are sold under one name."""
    return str(one.row["compute_capability"]) if one.component == "gpus" else ""


class Judge:
    """The rules of one problem."""

    def __init__(self, session: Session, problem: Problem, rules: Iterable[Rule] | None = None) -> None:
        self.context = session.context(problem)
        self.facts = session.facts(problem)
        self._said = session.verdicts.setdefault(self.context, {})
        facts = tuple(one for found in self.facts.values() for one in found)
        # Which rules hold depends on what is planned; verdicts of a selection of rules are of no use to others.
        self._pairs = session.pairs.setdefault((self.context, facts, problem.frameworks), {}) if rules is None else {}
        self._rules: dict[tuple[Kind, ...], list[Rule]] = {}
        for rule in REGISTRY if rules is None else rules:
            if not rule.needs or rule.needs in problem.frameworks:
                for kinds in dict.fromkeys((rule.choices, rule.choices[::-1])):
                    self._rules.setdefault(kinds, []).append(rule)

    def reasons(self, rule: Rule, *chosen: AnyCandidate) -> Iterable[str]:
        """Yield why a rule objects to these candidates, for every combination of the facts it looks at."""
        by_kind = {one.component: [one] for one in chosen}
        pools: list[Sequence[AnyCandidate]] = [by_kind.get(kind) or self.facts.get(kind, []) for kind in rule.scope]
        for combination in product(*pools):
            key: tuple[str | AnyCandidate, ...] = (rule.name, *combination)
            if key not in self._said:
                self._said[key] = rule.check(self.context, *combination)
            said = self._said[key]
            if said:
                yield said

    def accepts(self, *chosen: AnyCandidate) -> bool:
        """Return whether no rule about exactly these components objects; without arguments, whether the facts agree."""
        verdict = self._pairs.get(chosen)
        if verdict is None:
            rules = self._rules.get(tuple(one.component for one in chosen), ())
            verdict = not any(True for rule in rules for _reason in self.reasons(rule, *chosen))
            self._pairs[chosen] = self._pairs[chosen[::-1]] = verdict
        return verdict

    def related(self, one: Slot, other: Slot) -> bool:
        """Return whether a rule looks at both slots, and they can see each other."""
        alone = bool(one.environment and other.environment) and one.environment != other.environment
        return one != other and not alone and (one.component, other.component) in self._rules


@lru_cache(maxsize=2)
def session_for(tables: Tables) -> Session:
    """Return the one session for all questions to the same tables: hosts of a cluster ask nearly the same ones."""
    return Session(tables)
