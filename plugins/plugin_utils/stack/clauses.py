# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The candidates that rules let through together; a set of candidates is a number with their bits.

Verdicts are kept as bits, too: millions of them cost the garbage collector nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from .model import AnyCandidate
from .rule import Context, Doubt, Rule

Candidates = list[AnyCandidate]


class Clause:
    """A rule with the facts it looks at, one of each kind; compared by identity, for speed."""

    def __init__(self, context: Context, rule: Rule, facts: tuple[AnyCandidate, ...]) -> None:
        self.rule = rule
        self._check, self._place = rule.check, {kind: place for place, kind in enumerate(rule.scope, 1)}
        self._arguments: list[object] = [context, *(None for _kind in rule.scope)]
        for fact in facts:
            self._arguments[self._place[fact.component]] = fact
        self._good: dict[AnyCandidate | None, int] = {}
        self._doubtful: dict[AnyCandidate | None, int] = {}
        self._known: dict[AnyCandidate | None, int] = {}

    def reason(self, *chosen: AnyCandidate) -> str | None:
        """Return the reason why the rule objects to these candidates, which may come in any order."""
        arguments = list(self._arguments)
        for one in chosen:
            arguments[self._place[one.component]] = one
        return self._check(*arguments)

    def passing(self, mine: AnyCandidate | None, asked: int, others: Candidates, doubts: bool = False) -> int:
        """Return those of the others that the rule lets through, with one of mine if there is one. doubts: whether it passes those it doubts."""
        known = self._known.get(mine, 0)
        unknown = asked & ~known
        if unknown:
            beside = () if mine is None else (mine,)
            for number in bits(unknown):
                said = self.reason(*beside, others[number])
                if not said:
                    self._good[mine] = self._good.get(mine, 0) | 1 << number
                elif isinstance(said, Doubt):
                    self._doubtful[mine] = self._doubtful.get(mine, 0) | 1 << number
            self._known[mine] = known | unknown
        return (self._good.get(mine, 0) | (self._doubtful.get(mine, 0) if doubts else 0)) & asked


class Relation:
    """The pairs of candidates of two components that go together; doubts: the rules that let pass what they doubt."""

    def __init__(
        self, clauses: Sequence[Clause], here: Candidates, there: Candidates, doubts: Collection[Rule] = ()
    ) -> None:
        self._clauses, self._here, self._there = clauses, here, there
        self._doubts = [clause.rule in doubts for clause in clauses]
        self._good: dict[int, int] = {}
        self._known: dict[int, int] = {}

    def supported(self, here: int, there: int) -> int:
        """Return those there that something here goes together with; pairs are judged as far as that takes."""
        missing = there
        for number in bits(here):
            unknown = missing & ~self._known.get(number, 0)
            if unknown:
                self._judge(number, unknown)
            missing &= ~self._good.get(number, 0)
            if not missing:
                break
        return there & ~missing

    def _judge(self, number: int, unknown: int) -> None:
        mine, good = self._here[number], unknown
        for clause, doubts in zip(self._clauses, self._doubts, strict=True):
            good = clause.passing(mine, good, self._there, doubts)
        self._good[number] = self._good.get(number, 0) | good
        self._known[number] = self._known.get(number, 0) | unknown


def bits(number: int) -> Iterator[int]:
    """Yield the places of the bits of a number, the lowest first."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low
