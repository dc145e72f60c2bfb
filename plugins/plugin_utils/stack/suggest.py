# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nearest request that works: near versions before constraints given up, as few changes as possible, the nearest ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from .answer import Suggestion
from .blame import Part
from .components import COMPONENTS, DEFAULT, FRAMEWORKS, OPTIONAL, is_brought, key_of
from .components.driver.owner import VENDOR
from .interpreters import INTERPRETER
from .judge import CERTAIN, Doubts, Session
from .libraries import Version
from .model import Question, Solution
from .nearest import Relaxed, needs_no_default, other_constraints, relax
from .search import preferred, solve
from .versions import version

# A constraint that gets another value, or a component that is left out.
Option = tuple[str, bool]
# Changes at a time, and questions to the search, before all that can be given up is given up.
MOST_CHANGES, MOST_QUESTIONS = 4, 160


def nearest(
    session: Session, question: Question, found: Sequence[Sequence[Part]], doubts: Doubts = CERTAIN
) -> Relaxed | None:
    """Return a working request with the fewest components left out, then the fewest and the nearest changes; None when nothing works."""
    conflicts = [{name for name, _value in parts} for parts in found]
    if solve(session, _least(question), doubts=doubts) is None:
        return None
    asked = 0
    for dropped, count in _sizes(len(question.constraints) + 1):
        answers: list[Relaxed] = []
        for options in _options(question, conflicts, dropped, count):
            asked += 1
            changed, left_out = ([name for name, gone in options if gone is which] for which in (False, True))
            answer = relax(session, question, changed, left_out, doubts=doubts)
            answers += [answer] if answer else []
        if answers:
            return min(answers, key=_cost)
        if asked > MOST_QUESTIONS:
            break
    loose = _loose(question)
    gone = [name for name, left_out in loose if left_out]
    return relax(
        session, question, [name for name, _left_out in loose if name not in gone], gone, every=False, doubts=doubts
    )


def _sizes(most: int) -> Iterator[tuple[int, int]]:
    """Yield the numbers of components to leave out, and of changes to make in all."""
    for dropped in range(most + 1):
        for count in range(max(1, dropped), max(MOST_CHANGES, dropped) + 1):
            yield dropped, count


def unavoidable(session: Session, question: Question) -> Doubts:
    """Return the rules that doubt this host whatever is asked for, as those about MIG do: no proposal can do without them."""
    found = preferred(session, least := _least(question))
    return frozenset(rule for rule, _text in session.judge(least).doubts(found)) if found else CERTAIN


def _least(question: Question) -> Question:
    """Return the rest of a question when all that can be given up is."""
    gone = {name for name, _gone in _loose(question)}
    asked = {*question.constraints, *([DEFAULT] if DEFAULT in gone or is_brought(question.constraints) else [])}
    kept = tuple(name for name in question.frameworks if name not in asked)
    return replace(question.without_constraints(*gone), environments="split", frameworks=kept)


def _loose(question: Question) -> list[Option]:
    """Return everything that can be changed or left out; what was left open cannot have another value."""
    constraints = [name for name in sorted(question.constraints) if not key_of(name)[1].declares]
    constraints = [name for name in constraints if name != "driver_source" or question.constraints[name] != VENDOR]
    found = [(name, False) for name in constraints if question.constraints[name] != "latest"]
    if question.environments == "one" and len(question.frameworks) > 1:
        found.append(("environments", False))
    constraints += [
        name for name in FRAMEWORKS if name not in constraints and set(other_constraints([name])) & set(constraints)
    ]
    return found + [(name, True) for name in constraints if name in OPTIONAL]


def _options(
    question: Question, conflicts: Iterable[set[str]], dropped: int, count: int
) -> Iterable[tuple[Option, ...]]:
    """Yield the options to change: every conflict must lose a part."""
    for options in combinations(_loose(question), count):
        names = {name for name, _gone in options}
        if len(names) < count or sum(gone for _name, gone in options) != dropped:
            continue
        beside = set(other_constraints(name for name, gone in options if gone))
        if beside & {name for name, gone in options if not gone}:
            continue
        names |= beside
        if all(names & conflict for conflict in conflicts):
            yield options


def _cost(answer: Relaxed) -> tuple[int, int, tuple[float, ...]]:
    """Return the costs to keep small: changes that split environments, steps, and the age of what comes out."""
    return (answer.steps + 2 * ("environments" in answer.changes), len(answer.changes), _age(answer.solution))


def _age(solution: Solution) -> tuple[float, ...]:
    newest: dict[str, Version] = {
        slot.component: version(one.version) for slot, one in solution.items() if not one.absent
    }
    parts = [newest[one.name].release if one.name in newest else (0,) for one in COMPONENTS]
    return tuple(-float(number) for release in parts for number in (*release, 0, 0, 0)[:3])


def suggestion(question: Question, answer: Relaxed | None) -> Suggestion | None:
    """Return the request to make instead, what changes, and in one sentence what would work."""
    if answer is None:
        return None
    left = answer.question
    request: dict[str, str] = {name: value for name, value in left.constraints.items() if name != INTERPRETER}
    if left.environments != question.environments:
        request["environments"] = left.environments
    if needs_no_default(left):
        request[DEFAULT] = "none"
    changes = dict(sorted(answer.changes.items()))
    return {"request": dict(sorted(request.items())), "changes": changes, "text": _text(changes, answer.solution)}


def _text(changes: Mapping[str, str | None], solution: Solution) -> str:
    dropped = {name: "none" if name in FRAMEWORKS else "left open" for name, value in changes.items() if not value}
    said = [f"{name}: {value or dropped[name]}" for name, value in changes.items()]
    whole = [
        str(one)
        for slot, one in solution.items()
        if not one.absent and slot.component in ("driver", "cuda", *FRAMEWORKS)
    ]
    return f"{', '.join(said)} (then {', '.join(dict.fromkeys(whole))})"
