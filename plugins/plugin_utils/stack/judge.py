# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applying the rules: which candidates go together, each verdict found once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product

from .clauses import Candidates, Clause, Relation
from .components import RULES, component
from .model import FACTS, AnyCandidate, Kind, Question, Slot, Solution
from .rule import Context, Doubt, Rule
from .slots import environment_of
from .tables import Tables

Facts = tuple[tuple[AnyCandidate, ...], ...]
# The rules whose doubts let candidates pass: those of all, those of none, or some.
Doubts = tuple[Rule, ...] | frozenset[Rule]
CERTAIN: Doubts = frozenset()
# Questions whose rules are remembered: what one refusal asks about, and the hosts of a cluster.
MOST_JUDGES = 512


class Pool:
    """The candidates for a slot, the preferred first; numbers: their places among all of the component; mask: those as bits."""

    def __init__(self, candidates: Candidates, numbers: list[int]) -> None:
        self.candidates, self.numbers = candidates, numbers
        self.mask = sum(1 << number for number in set(numbers))


class Session:
    """The part that stays the same from question to question: candidates, and what rules said of them."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._pools: dict[tuple[object, ...], Pool] = {}
        self._same: dict[tuple[object, ...], AnyCandidate] = {}
        self._all: dict[Kind, Candidates] = {}
        self._numbers: dict[AnyCandidate, int] = {}
        self._clauses: dict[Context, dict[tuple[object, ...], Clause]] = {}
        self._judge = lru_cache(maxsize=MOST_JUDGES)(self._make_judge)

    def candidates(self, question: Question, slot: Slot) -> Candidates:
        """Return the candidates for a slot; the same ones for questions that do not differ in what makes them."""
        return self.pool(question, slot).candidates

    def pool(self, question: Question, slot: Slot) -> Pool:
        """Return the candidates for a slot with their numbers."""
        made = component(slot.component)
        constraints = tuple(question.constraints.get(name) for name in made.reads)
        key = (
            slot.component,
            constraints,
            id(question.os),
            question.accelerator,
            question.suites,
            question.permitted_build,
            question.owner,
        )
        if key not in self._pools:
            found = [self._interned(one) for one in made.candidates(self.tables, question)]
            self._pools[key] = Pool(found, [self._number(one) for one in found])
        return self._pools[key]

    def all(self, kind: Kind) -> Candidates:
        """Return every candidate of a component that was seen so far, by its number."""
        return self._all.setdefault(kind, [])

    def _interned(self, one: AnyCandidate) -> AnyCandidate:
        """Return the candidate that was made before of the same row, so that what was said of it holds for this one."""
        key = (one.component, one.version, one.variant, *component(one.component).identity(one))
        return self._same.setdefault(key, one)

    def _number(self, one: AnyCandidate) -> int:
        if one not in self._numbers:
            self._numbers[one] = len(self.all(one.component))
            self.all(one.component).append(one)
        return self._numbers[one]

    def judge(self, question: Question, rules: Iterable[Rule] | None = None, doubts: Doubts = RULES) -> Judge:
        """Return the rules of a question, all of them by default; doubts: those that let pass what they doubt."""
        chosen = RULES if rules is None else tuple(rules)
        homes = tuple((name, environment_of(question, name)) for name in question.frameworks)
        return self._judge(self._context(question), self._facts(question), homes, chosen, doubts)

    def _facts(self, question: Question) -> Facts:
        """Return the facts of a question by kind; equal facts of other questions are the same candidates."""
        facts = question.facts()
        return tuple(
            tuple(
                self._same.setdefault((kind, one.version, one.variant, _generation(one)), one)
                for one in facts.get(kind, ())
            )
            for kind in FACTS
        )

    def _context(self, question: Question) -> Context:
        """Return the context that rules may look at in addition to candidates."""
        asked = frozenset(question.constraints) & {"cuda"}
        return Context(
            self.tables, question.accelerator, question.wheels, asked, question.forward_compat, question.fabric
        )

    def _make_judge(
        self,
        context: Context,
        facts: Facts,
        homes: tuple[tuple[Kind, str], ...],
        rules: tuple[Rule, ...],
        doubts: Doubts,
    ) -> Judge:
        of_kind, made = dict(zip(FACTS, facts, strict=True)), self._clauses.setdefault(context, {})
        lives = dict(homes)
        found: dict[tuple[Kind, ...], list[Clause]] = {}
        for rule in rules:
            if not _holds(rule, lives):
                continue
            for looked_at in product(*(of_kind[kind] for kind in rule.scope if kind in of_kind)):
                clause = made.get((rule, looked_at)) or Clause(context, rule, looked_at)
                made[rule, looked_at] = clause
                for kinds in dict.fromkeys((rule.choices, rule.choices[::-1])):
                    found.setdefault(kinds, []).append(clause)
        return Judge(self, found, doubts)


def _holds(rule: Rule, homes: Mapping[Kind, str]) -> bool:
    """Return True if what a rule needs is planned, beside those that it judges; homes: the environments of frameworks."""
    if rule.needs is None:
        return True
    return rule.needs in homes and len({homes[one] for one in (rule.needs, *rule.scope) if one in homes}) == 1


def _generation(one: AnyCandidate) -> str:
    """Return the property that tells GPUs apart that are sold under one name."""
    return str(one.row["compute_capability"]) if one.component == "gpus" else ""


class Judge:
    """The rules of one question, by the kinds of candidates that they judge."""

    def __init__(self, session: Session, clauses: dict[tuple[Kind, ...], list[Clause]], doubts: Doubts) -> None:
        self._session, self._clauses, self._doubts = session, clauses, doubts
        self._relations: dict[tuple[Kind, Kind], Relation | None] = {}
        self.facts_agree = not any(True for _reason in self.reasons())

    def reasons(self, *chosen: AnyCandidate) -> Iterable[str]:
        """Yield the reasons why rules about exactly these components object; without arguments, why the facts clash."""
        for clause in self._clauses.get(tuple(one.component for one in chosen), ()):
            said = clause.reason(*chosen)
            if said and not isinstance(said, Doubt):
                yield said

    def doubts(self, solution: Solution) -> Iterator[tuple[Rule, str]]:
        """Yield the rules that doubt what fills the slots, and what they are not certain of."""
        by_kind: dict[Kind, list[Slot]] = {}
        for slot in solution:
            by_kind.setdefault(slot.component, []).append(slot)
        for kinds, clauses in self._clauses.items():
            if kinds != clauses[0].rule.choices:  # the same the other way round
                continue
            for slots in product(*(by_kind.get(kind, ()) for kind in kinds)):
                chosen = [solution[slot] for slot in slots]
                said = [(clause.rule, clause.reason(*chosen)) for clause in clauses if _see_each_other(*slots)]
                yield from ((rule, text) for rule, text in said if isinstance(text, Doubt))

    def alone(self, kind: Kind, asked: int) -> int:
        """Return those of a component's candidates that no rule about them alone objects to."""
        for clause in self._clauses.get((kind,), ()):
            asked = clause.passing(None, asked, self._session.all(kind), clause.rule in self._doubts)
        return asked

    def relation(self, one: Slot, other: Slot) -> Relation | None:
        """Return the pairs of candidates of two slots that go together; None where all do, or the slots cannot see each other."""
        if one == other or not _see_each_other(one, other):
            return None
        kinds = (one.component, other.component)
        if kinds not in self._relations:
            clauses = self._clauses.get(kinds, [])
            here, there = map(self._session.all, kinds)
            self._relations[kinds] = Relation(clauses, here, there, self._doubts) if clauses else None
        return self._relations[kinds]


def _see_each_other(*slots: Slot) -> bool:
    """Return True if what fills slots meets: on the host, or in one environment."""
    return len({slot.environment for slot in slots} - {""}) < 2


@lru_cache(maxsize=2)
def session_for(tables: Tables) -> Session:
    """Return the one session for all questions to the same tables: hosts of a cluster ask nearly the same ones."""
    return Session(tables)
