# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reasons for a version of a component, and against the next: each tried against the whole question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

from .advice import reasons
from .blame import blamed, keep
from .components import COMPONENTS, component
from .explain import refusal
from .input_error import InputError
from .inputs import read_question
from .judge import Session, session_for
from .libraries import Version
from .model import AnyCandidate, Question, Slot, Solution
from .search import preferred, solve
from .tables import Tables
from .versions import version
from .wording import listed, sentences

MOST = 4


class Rejected(TypedDict):
    """A candidate that would have gone before the chosen one; rules: empty where it fits, and something else decided."""

    version: str
    rules: list[str]
    between: list[str]
    reasons: list[str]


class Explanation(TypedDict):
    """The reason for a chosen version, and those next to it that were not, the nearest first."""

    component: str
    version: str | None
    because: str
    rejected: list[Rejected]


def explanation(tables: Tables, given: Mapping[str, Any], name: str) -> Explanation | None:
    """Return the explanation of the version of a component that a question gets; None where it gets no stack.

    Raise InputError for a component that no stack has.
    """
    known = [one.name for one in COMPONENTS]
    if name not in known:
        raise InputError("wrong_word", "explain", value=name, choices=known)
    session, question = session_for(tables), read_question(tables, given)
    solution = preferred(session, question)
    if solution is None:
        return None
    slot = next((slot for slot, one in solution.items() if slot.component == name and not one.absent), None)
    texts = {one["component"]: one["text"] for one in reasons(tables, question, solution)}
    if slot is None:
        return {"component": name, "version": None, "because": "nothing asks for it", "rejected": []}
    chosen = solution[slot]
    return {
        "component": name,
        "version": str(chosen).partition(" ")[2],
        "because": texts.get(name, ""),
        "rejected": [_rejected(session, question, one, solution) for one in _next(session, question, slot, chosen)],
    }


def _next(session: Session, question: Question, slot: Slot, chosen: AnyCandidate) -> list[AnyCandidate]:
    """Return the candidates that are preferred to the chosen one, the nearest first, then those that are newer and not preferred."""
    free = session.candidates(question.without_constraints(slot.component, *_asks(chosen)), slot)
    place = next((place for place, one in enumerate(free) if _label(one) == _label(chosen)), 0)
    newer = [one for one in reversed(free[place:]) if version(one.version if not one.absent else "0") > _age(chosen)]
    found = {_label(one): one for one in [*reversed(free[:place]), *newer] if not one.absent}
    return [one for label, one in found.items() if label != _label(chosen)][:MOST]


def _age(one: AnyCandidate) -> Version:
    return version(one.version)


def _asks(one: AnyCandidate) -> dict[str, str]:
    """Return the constraints that ask for a candidate."""
    keys = component(one.component).keys
    return {key.name: key.shown(one) for key in keys if key.name == one.component or key.exact}


def _label(one: AnyCandidate) -> str:
    """Return the label that tells a candidate from others: a driver by its branch, PyTorch by release and build."""
    name, *more = _asks(one).values()
    return f"{name} ({', '.join(more)})" if more else name


def _rejected(session: Session, question: Question, one: AnyCandidate, solution: Solution) -> Rejected:
    """Return the outcome of asking for a candidate."""
    asks = _asks(one)
    asked = replace(question, constraints={**question.constraints, **asks})
    other = preferred(session, asked)
    if other is not None:
        doubts = [text for _rule, text in session.judge(asked).doubts(other)]
        reason = _preferred(question, one, solution, other, doubts)
        return {"version": _label(one), "rules": [], "between": [], "reasons": [reason]}
    found = blamed(session, asked)
    parts = next((parts for parts in found if set(asks) & set(dict(parts))), found[0])
    whole = [
        *parts,
        *(constraint for constraint in asks.items() if constraint not in parts),
    ]  # so that the reasons speak of this candidate
    rules, texts = refusal(session, asked, whole if solve(session, keep(asked, whole)) is None else parts)
    between = sorted({part for part, _value in parts} - set(asks))
    return {"version": _label(one), "rules": [rule.name for rule in rules], "between": between, "reasons": texts}


def _preferred(
    question: Question, one: AnyCandidate, solution: Solution, other: Solution, doubts: Sequence[str]
) -> str:
    """Return the reason why a candidate that fits was not taken; other: what would be planned with it."""
    constraints = [f"{name} {question.constraints[name]}" for name in _asks(one) if name in question.constraints]
    if constraints:
        return f"it fits, but {listed(constraints)} {'was' if len(constraints) == 1 else 'were'} asked for"
    if doubts:
        return f"it fits as far as is known, but no source confirms {listed(doubts)}"
    if not component(one.component).verified(one):
        return "it fits as far as is known, but its wheels have not been verified"
    changed = [(solution[slot], other[slot]) for slot in solution if str(solution[slot]) != str(other[slot])]
    if changed and changed[0][0].component != one.component:
        return f"it fits with {changed[0][1]}, but {changed[0][0]} is preferred to that"
    return "it fits, but the chosen one is preferred"


def explanation_lines(told: Explanation) -> list[tuple[str, str]]:
    """Return an explanation as labels and texts."""
    name = told["component"]
    lines = [("explained", f"{name} {told['version'] or 'none'}: {told['because']}")]
    return lines + [("rejected", f"{one['version']}: {sentences(one['reasons'])}") for one in told["rejected"]]
