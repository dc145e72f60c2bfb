# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applying the rules: which candidates go together, each verdict found once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product

from .components import RULES, component
from .model import FACTS, AnyCandidate, Kind, Problem, Slot
from .rule import Context, Rule
from .tables import Tables

Pool = list[AnyCandidate]


class Clause:
    """A rule with the facts it looks at, one of each kind; compared by identity, for speed."""

    def __init__(self, context: Context, rule: Rule, facts: tuple[AnyCandidate, ...]) -> None:
        self.context, self.rule, self.facts = context, rule, facts
        self._said: dict[tuple[AnyCandidate, ...], str | None] = {}

    def reason(self, *chosen: AnyCandidate) -> str | None:
        """Return why the rule objects to these candidates, which may come in any order."""
        if chosen not in self._said:
            looked_at = {one.component: one for one in (*self.facts, *chosen)}
            self._said[chosen] = self.rule.check(self.context, *(looked_at[kind] for kind in self.rule.scope))
        return self._said[chosen]


Clauses = tuple[Clause, ...]


class Relation:
    """Which of one pool goes together with which of another; a set of candidates is a number with their bits."""

    def __init__(self, clauses: Clauses, here: Pool, there: Pool) -> None:
        self._clauses, self._here, self._there = clauses, here, there
        self._good, self._known = [0] * len(here), [0] * len(here)

    def supported(self, here: int, there: int) -> int:
        """Return those there that something here goes together with; pairs are judged as far as that takes."""
        missing = there
        for place in bits(here):
            unknown = missing & ~self._known[place]
            if unknown:
                self._judge(place, unknown)
            missing &= ~self._good[place]
            if not missing:
                break
        return there & ~missing

    def _judge(self, place: int, unknown: int) -> None:
        mine = self._here[place]
        for other in bits(unknown):
            theirs = self._there[other]
            if not any(clause.reason(mine, theirs) for clause in self._clauses):
                self._good[place] |= 1 << other
        self._known[place] |= unknown


def bits(number: int) -> Iterator[int]:
    """Yield the places of the bits of a number, the lowest first."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


class Session:
    """What stays the same from question to question: candidates, and what rules said of them."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._pools: dict[tuple[object, ...], Pool] = {}
        self._same: dict[tuple[object, ...], AnyCandidate] = {}
        self._clauses: dict[tuple[object, ...], Clause] = {}
        self._relations: dict[tuple[object, ...], Relation] = {}
        self._alone: dict[tuple[object, ...], int] = {}

    def candidates(self, problem: Problem, slot: Slot) -> Pool:
        """Return the candidates for a slot; the same ones for problems that do not differ in what makes them."""
        made = component(slot.component)
        wishes = tuple(problem.wishes.get(name) for name in made.reads)
        key = (
            slot.component,
            wishes,
            id(problem.os),
            problem.accelerator,
            problem.suites,
            problem.permitted_build,
            problem.owner,
        )
        if key not in self._pools:
            self._pools[key] = [self._interned(one) for one in made.candidates(self.tables, problem)]
        return self._pools[key]

    def _interned(self, one: AnyCandidate) -> AnyCandidate:
        """Return the candidate that was made before of the same row, so that what was said of it holds for this one."""
        key = (one.component, one.version, one.variant, *component(one.component).identity(one))
        return self._same.setdefault(key, one)

    def facts(self, problem: Problem) -> dict[Kind, list[AnyCandidate]]:
        """Return the facts of a problem; equal facts of other problems are the same candidates."""
        return {
            kind: [self._same.setdefault((kind, one.version, _generation(one)), one) for one in found]
            for kind, found in problem.facts().items()
        }

    def context(self, problem: Problem) -> Context:
        """Return what rules may look at beside candidates."""
        asked = frozenset(problem.wishes) & {"cuda"}
        return Context(self.tables, problem.accelerator, problem.wheels, asked, problem.forward_compat, problem.fabric)

    def clause(self, context: Context, rule: Rule, facts: tuple[AnyCandidate, ...]) -> Clause:
        """Return the one clause of a rule and these facts."""
        key = (context, rule, facts)
        if key not in self._clauses:
            self._clauses[key] = Clause(context, rule, facts)
        return self._clauses[key]

    def relation(self, clauses: Clauses, here: Pool, there: Pool) -> Relation:
        """Return the one relation of two pools under these clauses."""
        key = (clauses, id(here), id(there))
        if key not in self._relations:
            self._relations[key] = Relation(clauses, here, there)
        return self._relations[key]

    def alone(self, clauses: Clauses, pool: Pool) -> int:
        """Return the candidates of a pool that none of these clauses objects to."""
        key = (clauses, id(pool))
        if key not in self._alone:
            good = (not any(clause.reason(one) for clause in clauses) for one in pool)
            self._alone[key] = sum(1 << place for place, fine in enumerate(good) if fine)
        return self._alone[key]


def _generation(one: AnyCandidate) -> str:
    """Return what tells GPUs apart that are sold under one name."""
    return str(one.row["compute_capability"]) if one.component == "gpus" else ""


class Judge:
    """The rules of one problem."""

    def __init__(self, session: Session, problem: Problem, rules: Iterable[Rule] | None = None) -> None:
        context, facts = session.context(problem), session.facts(problem)
        found: dict[tuple[Kind, ...], list[Clause]] = {}
        for rule in RULES if rules is None else rules:
            if rule.needs and rule.needs not in problem.frameworks:
                continue
            for looked_at in product(*(facts.get(kind, []) for kind in rule.scope if kind in FACTS)):
                for kinds in dict.fromkeys((rule.choices, rule.choices[::-1])):
                    found.setdefault(kinds, []).append(session.clause(context, rule, looked_at))
        self._clauses = {kinds: tuple(clauses) for kinds, clauses in found.items()}

    def clauses(self, *kinds: Kind) -> Clauses:
        """Return the clauses about exactly these kinds of candidates."""
        return self._clauses.get(kinds, ())

    def reasons(self, *chosen: AnyCandidate) -> Iterable[str]:
        """Yield why rules about exactly these components object; without arguments, why the facts clash."""
        for clause in self.clauses(*(one.component for one in chosen)):
            said = clause.reason(*chosen)
            if said:
                yield said

    def between(self, one: Slot, other: Slot) -> Clauses:
        """Return the clauses about two slots; none where they cannot see each other."""
        alone = bool(one.environment and other.environment) and one.environment != other.environment
        return () if one == other or alone else self.clauses(one.component, other.component)


@lru_cache(maxsize=2)
def session_for(tables: Tables) -> Session:
    """Return the one session for all questions to the same tables: hosts of a cluster ask nearly the same ones."""
    return Session(tables)
