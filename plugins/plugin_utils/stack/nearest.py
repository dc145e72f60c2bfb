# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nearest thing to a constraint that works: versions by their order, and only what can be installed as proposed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .components import ALONE, DEFAULT, FRAMEWORKS, component, homeless, is_brought, key_of, permitted_build
from .judge import CERTAIN, Doubts, Session
from .model import AnyCandidate, Question, Solution
from .search import Wanted, solve
from .slots import slots
from .tables import Tables
from .versions import version

Cost = Callable[[AnyCandidate], "tuple[int, ...] | None"]


@dataclass(frozen=True)
class Relaxed:
    """A request that works after some changes: None leaves a component out. steps: how far away the new values are."""

    question: Question
    solution: Solution
    changes: dict[str, str | None]
    steps: int


def relax(
    session: Session,
    question: Question,
    names: Iterable[str],
    left_out: Iterable[str] = (),
    every: bool = True,
    doubts: Doubts = CERTAIN,
) -> Relaxed | None:
    """Return the nearest stack where these constraints may have other values, and these components are left out.

    every: whether an answer must have another value for every constraint
    doubts: the rules that may doubt it, as suggest.unavoidable() finds them
    """
    names, left_out = tuple(names), tuple(left_out)
    if any(key_of(name)[1].declares for name in names if name != "environments"):
        return None
    for loose in _loosened(question, names, left_out):
        keys = _keys(session, question, loose, [name for name in names if name != "environments"])
        for wanted in _attempts(session, loose, keys, names, doubts):
            solution = solve(session, loose, wanted=wanted, doubts=doubts)
            if solution is not None:
                return _proved(session, question, loose, solution, keys, names, left_out, every, doubts)
    return None


def _loosened(question: Question, names: Sequence[str], left_out: Sequence[str]) -> Iterable[Question]:
    """Yield the question without these constraints and components; what is made for others is nothing alone."""
    gone = {*names, *left_out, *other_constraints(left_out)}
    left = question.without_constraints(*gone)
    if "environments" in names:
        left = replace(left, environments="split")
    frameworks = tuple(name for name in question.frameworks if name not in left_out)
    alone = tuple(name for name in frameworks if name != DEFAULT)
    if is_brought(question.constraints) and not homeless(alone):
        frameworks = alone
    if question.frameworks and not frameworks and DEFAULT not in left_out:
        yield replace(left, frameworks=(DEFAULT,))  # what is planned where nothing else is asked for
    if not homeless(frameworks):
        yield replace(left, frameworks=frameworks)


def other_constraints(left_out: Iterable[str]) -> list[str]:
    """Return the constraints about these frameworks in addition to the one for their version."""
    return [name for one in left_out if one in FRAMEWORKS for name in component(one).reads if name != one]


def _attempts(
    session: Session, loose: Question, keys: dict[str, Cost], names: Sequence[str], doubts: Doubts
) -> Iterable[Wanted]:
    """Yield the orders to look for a solution in; one constraint on Python is one for every environment."""
    mine = [slot for slot in slots(loose) if slot.component in keys]
    pythons = [slot for slot in mine if slot.component == "python"]
    apart = [(slot, keys[slot.component]) for slot in mine]
    if len(pythons) < 2:
        yield apart
        return
    if solve(session, loose, wanted=apart, doubts=doubts) is None:
        return  # nor is there one with the same Python for all
    key = keys["python"]
    pool = [one for one in session.candidates(loose, pythons[0]) if key(one) is not None]
    for chosen in sorted(pool, key=lambda one: key(one) or ()):
        others = [(slot, keys[slot.component]) for slot in mine if slot not in pythons]
        constraints = [name for name in names if name in component("python").reads]
        yield [*others, *((slot, _only(chosen, constraints)) for slot in pythons)]


def _only(chosen: AnyCandidate, names: Sequence[str]) -> Cost:
    """Return a key that allows what has the same values for these constraints alone."""
    return lambda one: (0,) if all(shown(one, name) == shown(chosen, name) for name in names) else None


def _keys(session: Session, question: Question, loose: Question, names: Sequence[str]) -> dict[str, Cost]:
    """Return the sort keys for the candidates of each component: their distance from the constraints."""
    by_component: dict[str, list[Callable[[AnyCandidate], int]]] = {}
    for name in names:
        about = _about(name)
        by_component.setdefault(about, []).append(_distance(session, question, loose, name, about))
    return {component: _key(session.tables, loose, distances) for component, distances in by_component.items()}


def _key(tables: Tables, question: Question, distances: Sequence[Callable[[AnyCandidate], int]]) -> Cost:
    """Return the key of a component: what lives comes before what has ended, and the near before the far."""

    def key(one: AnyCandidate) -> tuple[int, ...] | None:
        if not _can_be_installed(tables, question, one):
            return None
        return component(one.component).ended(one), sum(distance(one) for distance in distances)

    return key


def _distance(
    session: Session, question: Question, loose: Question, name: str, component: str
) -> Callable[[AnyCandidate], int]:
    """Return a function for the number of known versions between a candidate and what was asked for; 0 for constraints that are words."""
    slot = next((slot for slot in slots(loose) if slot.component == component), None)
    order = key_of(name)[1].order
    if slot is None or order is None:
        return lambda one: 0
    mine = {name: question.constraints[name]}
    asked: set[tuple[Any, ...]] = set()
    for constraints in ({**loose.constraints, **mine}, mine):  # the others may leave nothing of what this one asks for
        only = replace(loose, constraints=constraints, permitted_build=question.permitted_build)
        asked = asked or {order(one) for one in session.candidates(only, slot) if not one.absent}
    free = {order(one) for one in session.candidates(loose, slot) if not one.absent}
    places = {order: place for place, order in enumerate(sorted(asked | free))}
    aims = [places[order] for order in asked]
    far = {order: min((abs(place - aim) for aim in aims), default=0) for order, place in places.items()}
    return lambda one: far[order(one)]


def _can_be_installed(tables: Tables, question: Question, one: AnyCandidate) -> bool:
    """Return True if a candidate was seen where the host would get it from, unless it was not looked at."""
    if one.absent or (one.component in FRAMEWORKS and version(one.version).is_devrelease):
        return False
    return component(one.component).installable(tables, question, one)


def _proved(
    session: Session,
    question: Question,
    loose: Question,
    solution: Solution,
    keys: dict[str, Cost],
    names: Sequence[str],
    left_out: Sequence[str],
    every: bool,
    doubts: Doubts,
) -> Relaxed | None:
    """Return the changes that a solution stands for, if asking for them gives a stack."""
    changes: dict[str, str | None] = {name: instead(solution, name) for name in names if name != "environments"}
    planned = {slot.component for slot in solution}
    same = [name for name, value in changes.items() if value and value == question.constraints.get(name)]
    if (same and every) or any(_about(name) in planned for name, value in changes.items() if value is None):
        return None
    asked = replace(
        loose, constraints={**loose.constraints, **{name: value for name, value in changes.items() if value}}
    )
    asked = replace(asked, permitted_build=permitted_build(asked.constraints))
    proof = solve(session, asked, doubts=doubts)
    if proof is None:
        return None
    steps = sum((keys[slot.component](one) or (0,))[-1] for slot, one in solution.items() if slot.component in keys)
    changes = {name: value for name, value in changes.items() if name not in same}
    changes.update({name: "split" for name in names if name == "environments"})
    changes.update(dict.fromkeys(_gone(question, asked, left_out)))
    changes.update({name: instead(proof, name) for name in asked.frameworks if name not in question.frameworks})
    return Relaxed(asked, proof, changes, steps)


def _gone(question: Question, asked: Question, left_out: Sequence[str]) -> Iterable[str]:
    """Return the constraints to give up with these components; where no framework is left, the default is refused by name."""
    yield from left_out
    yield from (name for name in other_constraints(left_out) if name in question.constraints)
    if left_out and needs_no_default(asked):
        yield DEFAULT


def needs_no_default(question: Question) -> bool:
    """Return True if a request has to say that the default framework is not wanted."""
    return not set(ALONE) & set(question.frameworks)


def instead(solution: Solution, name: str) -> str | None:
    """Return the value that a solution has for a constraint; None where it has nothing, or not the same in every environment."""
    about = _about(name)
    values = {shown(one, name) for slot, one in solution.items() if slot.component == about and not one.absent}
    return values.pop() if len(values) == 1 else None


def _about(name: str) -> str:
    """Return the component that a constraint is about."""
    return key_of(name)[0].name


def shown(one: AnyCandidate, name: str) -> str:
    """Return the value of a constraint that asks for a candidate."""
    return key_of(name)[1].shown(one)
