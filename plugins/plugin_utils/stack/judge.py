# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applying the rules to a problem, and remembering what they said."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import product

from . import rules_frameworks, rules_host, rules_pairs
from .candidates import READS, candidates
from .model import Candidate, Problem, Slot
from .rule import REGISTRY, Context, Rule
from .tables import Tables

# Importing these registers their rules.
RULE_MODULES = (rules_frameworks, rules_host, rules_pairs)


class Session:
    """What stays the same from question to question: candidates, and what rules said of them."""

    def __init__(self, tables: Tables):
        self.tables = tables
        self._candidates: dict[tuple, list[Candidate]] = {}
        self._facts: dict[tuple[str, str], Candidate] = {}
        self.verdicts: dict[Context, dict[tuple, str | None]] = {}
        self.pairs: dict[tuple, dict[tuple[Candidate, ...], bool]] = {}

    def candidates(self, problem: Problem, slot: Slot) -> list[Candidate]:
        wishes = tuple(problem.wishes.get(name) for name in READS[slot.component])
        key = (slot.component, wishes, id(problem.os), problem.accelerator, problem.suites, problem.permitted_build)
        if key not in self._candidates:
            self._candidates[key] = candidates(self.tables, problem, slot)
        return self._candidates[key]

    def facts(self, problem: Problem) -> dict[str, list[Candidate]]:
        return {
            kind: [self._facts.setdefault((kind, one.version), one) for one in found]
            for kind, found in problem.facts().items()
        }

    def context(self, problem: Problem) -> Context:
        asked = frozenset(problem.wishes) & {"cuda"}
        nvswitch = problem.needs_fabric_manager
        return Context(self.tables, problem.accelerator, problem.wheels, asked, problem.forward_compat, nvswitch)


class Judge:
    """The rules of one problem."""

    def __init__(self, session: Session, problem: Problem, rules: Iterable[Rule] | None = None):
        self.context = session.context(problem)
        self.facts = session.facts(problem)
        self._said = session.verdicts.setdefault(self.context, {})
        facts = tuple(one for found in self.facts.values() for one in found)
        # Which rules hold depends on what is planned; verdicts of a selection of rules are of no use to others.
        self._pairs = session.pairs.setdefault((self.context, facts, problem.frameworks), {}) if rules is None else {}
        self._rules: dict[tuple[str, ...], list[Rule]] = {}
        for rule in REGISTRY if rules is None else rules:
            if not rule.needs or rule.needs in problem.frameworks:
                for kinds in dict.fromkeys((rule.choices, rule.choices[::-1])):
                    self._rules.setdefault(kinds, []).append(rule)

    def reasons(self, rule: Rule, *chosen: Candidate) -> Iterable[str]:
        """Why a rule objects to these candidates, for every combination of the facts it looks at."""
        by_kind = {one.component: [one] for one in chosen}
        pools = [by_kind.get(kind) or self.facts.get(kind, ()) for kind in rule.scope]
        for combination in product(*pools):
            key = (rule.name, *combination)
            if key not in self._said:
                self._said[key] = rule.check(self.context, *combination)
            if self._said[key]:
                yield self._said[key]

    def accepts(self, *chosen: Candidate) -> bool:
        """Whether no rule about exactly these components objects; without arguments, whether the facts agree."""
        verdict = self._pairs.get(chosen)
        if verdict is None:
            rules = self._rules.get(tuple(one.component for one in chosen), ())
            verdict = not any(True for rule in rules for _reason in self.reasons(rule, *chosen))
            self._pairs[chosen] = self._pairs[chosen[::-1]] = verdict
        return verdict

    def related(self, one: Slot, other: Slot) -> bool:
        """Whether a rule looks at both slots, and they can see each other."""
        alone = one.environment and other.environment and one.environment != other.environment
        return one != other and not alone and (one.component, other.component) in self._rules


@lru_cache(maxsize=2)
def session_for(tables: Tables) -> Session:
    """One session for all questions to the same tables: hosts of a cluster ask nearly the same ones."""
    return Session(tables)
