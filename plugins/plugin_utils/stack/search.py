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

from .judge import Judge, Relation, Session, bits
from .model import AnyCandidate, Problem, Slot
from .rule import Rule
from .slots import slots

# The slots to decide before the others, each with what its candidates are sorted by; None forbids a candidate.
Wanted = Sequence[tuple[Slot, Callable[[AnyCandidate], Any]]]
Alive = list[int]


class Network:
    """The slots of a problem, what may fill them, and what goes together."""

    def __init__(self, session: Session, problem: Problem, rules: Iterable[Rule] | None = None) -> None:
        judge = Judge(session, problem, rules)
        self.slots = slots(problem)
        self.pools = [session.candidates(problem, slot) for slot in self.slots]
        self.alive: Alive = [
            session.alone(judge.clauses(slot.component), pool)
            for slot, pool in zip(self.slots, self.pools, strict=True)
        ]
        self._agreed = not any(True for _reason in judge.reasons())
        self._neighbours: list[list[tuple[int, Relation]]] = [
            [
                (there, session.relation(clauses, self.pools[here], self.pools[there]))
                for there, other in enumerate(self.slots)
                if (clauses := judge.between(one, other))
            ]
            for here, one in enumerate(self.slots)
        ]

    def narrowed(self, alive: Alive, changed: Iterable[int] | None = None) -> Alive | None:
        """Return what is left where every candidate has a partner in every other slot; None when a slot runs empty."""
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

    def fill(self, alive: Alive, order: list[tuple[int, list[int] | None]]) -> Alive | None:
        """Return one candidate for each slot, each as early as those before it allow.

        order: slots with the places of their candidates in the order of preference; None: as they stand in the pool
        """
        if not order:
            return alive
        here, preferred = order[0]
        for place in bits(alive[here]) if preferred is None else preferred:
            if not alive[here] >> place & 1:
                continue
            chosen = list(alive)
            chosen[here] = 1 << place
            left = chosen if chosen == alive else self.narrowed(chosen, [here])
            found = self.fill(left, order[1:]) if left else None
            if found:
                return found
        return None

    def preferences(self, wanted: Wanted) -> list[tuple[int, list[int] | None]]:
        """Return the order to decide in: what is wanted first, then the slots as they are."""
        first: list[tuple[int, list[int] | None]] = []
        for slot, key in wanted:
            here = self.slots.index(slot)
            keys = {place: key(one) for place, one in enumerate(self.pools[here])}
            first.append((here, sorted((place for place in keys if keys[place] is not None), key=keys.__getitem__)))
        return first + [(here, None) for here in range(len(self.slots)) if here not in dict(first)]


def solve(
    session: Session, problem: Problem, rules: Iterable[Rule] | None = None, wanted: Wanted = ()
) -> dict[Slot, AnyCandidate] | None:
    """Return the preferred way to fill every slot, or None when there is none."""
    network = Network(session, problem, rules)
    alive = network.narrowed(network.alive)
    found = network.fill(alive, network.preferences(wanted)) if alive else None
    if not found:
        return None
    return {
        slot: pool[chosen.bit_length() - 1]
        for slot, pool, chosen in zip(network.slots, network.pools, found, strict=True)
    }
