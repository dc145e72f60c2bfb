# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filling the slots: the first combination, in the order of preference, that no rule objects to.

A depth-first search that keeps every slot consistent with its neighbours after each choice (maintaining arc
consistency, Sabin and Freuder 1994): what it finds first is the lexicographically first solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .clauses import Relation
from .components import RULES
from .judge import CERTAIN, Doubts, Session
from .model import AnyCandidate, Question, Slot
from .rule import Rule
from .slots import slots

# The slots to decide before the others, each with what its candidates are sorted by; None forbids a candidate.
Wanted = Sequence[tuple[Slot, Callable[[AnyCandidate], Any]]]
Alive = list[int]


class Network:
    """The slots of a question, what may fill them, and what goes together."""

    def __init__(
        self, session: Session, question: Question, rules: Iterable[Rule] | None = None, doubts: Doubts = RULES
    ) -> None:
        judge = session.judge(question, rules, doubts)
        self.slots = slots(question)
        self.pools = [session.pool(question, slot) for slot in self.slots]
        self.alive: Alive = [
            judge.alone(slot.component, pool.mask) for slot, pool in zip(self.slots, self.pools, strict=True)
        ]
        self._agreed = judge.facts_agree
        self._neighbours: list[list[tuple[int, Relation]]] = [
            [(there, found) for there, other in enumerate(self.slots) if (found := judge.relation(one, other))]
            for one in self.slots
        ]

    def narrowed(self, alive: Alive, changed: Iterable[int] | None = None) -> Alive | None:
        """Return the candidates that are left where every one has a partner in every other slot; None when a slot runs empty."""
        if not self._agreed or not all(alive):
            return None
        alive, queue = list(alive), list(range(len(alive)) if changed is None else changed)
        while queue:
            here = queue.pop(0)
            for there, relation in self._neighbours[here]:
                left = relation.supported(alive[here], alive[there])
                if left == alive[there]:
                    continue
                if not left:
                    return None
                alive[there] = left
                if there not in queue:
                    queue.append(there)
        return alive

    def fill(self, alive: Alive, order: list[tuple[int, list[int]]]) -> Alive | None:
        """Return one candidate for each slot, each as early as those before it allow.

        order: slots with the numbers of their candidates in the order of preference
        """
        if not order:
            return alive
        here, preferred = order[0]
        for number in preferred:
            if not alive[here] >> number & 1:
                continue
            chosen = list(alive)
            chosen[here] = 1 << number
            left = chosen if chosen == alive else self.narrowed(chosen, [here])
            found = self.fill(left, order[1:]) if left else None
            if found:
                return found
        return None

    def preferences(self, wanted: Wanted) -> list[tuple[int, list[int]]]:
        """Return the order to decide in: what is wanted first, then the slots as they are."""
        first: dict[int, list[int]] = {}
        for slot, key in wanted:
            pool = self.pools[here := self.slots.index(slot)]
            keys = {number: key(one) for number, one in zip(pool.numbers, pool.candidates, strict=True)}
            first[here] = sorted((number for number in keys if keys[number] is not None), key=keys.__getitem__)
        others = [(here, pool.numbers) for here, pool in enumerate(self.pools) if here not in first]
        return [*first.items(), *others]

    def permitted(self, order: list[tuple[int, list[int]]]) -> Alive:
        """Return the candidates that can fill the slots at all, without those that an order leaves out."""
        alive = list(self.alive)
        for here, preferred in order:
            if preferred is not self.pools[here].numbers:
                alive[here] &= sum(1 << number for number in set(preferred))
        return alive


def preferred(session: Session, question: Question) -> dict[Slot, AnyCandidate] | None:
    """Return the preferred way to fill every slot, or None when there is none: one that fits for certain, else with the fewest doubts."""
    found = solve(session, question, doubts=CERTAIN) or solve(session, question)
    if not found:
        return None
    needed = {rule for rule, _text in session.judge(question).doubts(found)}
    for rule in sorted(needed, key=lambda one: one.name):
        other = solve(session, question, doubts=frozenset(needed - {rule}))
        if other:
            found, needed = other, needed - {rule}
    return found


def solve(
    session: Session,
    question: Question,
    rules: Iterable[Rule] | None = None,
    wanted: Wanted = (),
    doubts: Doubts = RULES,
) -> dict[Slot, AnyCandidate] | None:
    """Return the first way to fill every slot, or None when there is none; doubts: the rules that let pass what they doubt."""
    network = Network(session, question, rules, doubts)
    order = network.preferences(wanted)
    alive = network.narrowed(network.permitted(order))
    found = network.fill(alive, order) if alive else None
    if not found:
        return None
    return {
        slot: session.all(slot.component)[chosen.bit_length() - 1]
        for slot, chosen in zip(network.slots, found, strict=True)
    }
