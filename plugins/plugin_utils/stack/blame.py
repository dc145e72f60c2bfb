# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The constraints and facts to blame where there is no stack: the smallest sets of them that clash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .components import DEFAULT, FRAMEWORKS, component, is_brought, key_of
from .interpreters import INTERPRETER
from .judge import Session
from .model import Question
from .search import solve

# What a user can give up on is a constraint; what only can be looked at is a fact. Facts are taken away first while looking
# for the smallest set, so that a fact is blamed only when no set of constraints clashes by itself.
Part = tuple[str, str]
MOST = 5
# Constraints that mean the default framework without naming it: for its build, or for what is made for it.
OF_THE_DEFAULT = {*component(DEFAULT).reads, *(name for name in FRAMEWORKS if DEFAULT in component(name).beside)} - {
    DEFAULT
}


def parts_of(question: Question) -> list[Part]:
    """Return everything that could be part of a conflict, facts first."""
    facts = [("gpus", gpu.model) for gpu in question.gpus] + [("kernels", release) for release in question.kernels]
    facts += [("os", ""), ("arch", ""), ("ansible_core", "")]
    shared = [("environments", "one")] if question.environments == "one" and len(question.frameworks) > 1 else []
    return facts + shared + sorted(question.constraints.items())


def keep(question: Question, parts: Iterable[Part]) -> Question:
    """Return the question that is left with only these parts."""
    parts = set(parts)
    names = {name for name, _value in parts}
    constraints = {name: constraint for name, constraint in question.constraints.items() if name in names}
    unasked = DEFAULT not in question.constraints and not is_brought(question.constraints)
    default = unasked or bool(OF_THE_DEFAULT & set(constraints))
    frameworks = tuple(name for name in question.frameworks if name in constraints or (default and name == DEFAULT))
    return replace(
        question,
        os=question.os if "os" in names else None,
        arch=question.arch if "arch" in names else None,
        wheels=question.wheels if "arch" in names else None,
        gpus=tuple(gpu for gpu in question.gpus if ("gpus", gpu.model) in parts),
        kernels=tuple(release for release in question.kernels if ("kernels", release) in parts),
        ansible_core=question.ansible_core if "ansible_core" in names else None,
        constraints=constraints,
        frameworks=frameworks,
        environments=question.environments if ("environments", "one") in parts else "split",
        bare_environment=bool({"python", INTERPRETER} & set(constraints)),
    )


def _can_change(question: Question, name: str) -> bool:
    """Return True if this is a constraint that could have another value; some say what the host has."""
    return name in question.constraints and not key_of(name)[1].declares


def smallest_conflict(session: Session, question: Question, parts: Sequence[Part]) -> list[Part]:
    """Return a set of parts that clashes while every smaller one works: take away whatever is not needed for the clash."""
    kept, before = list(parts), 0
    while len(kept) != before:  # as a rule once: what goes can take a framework with it that only stood for others
        before = len(kept)
        for part in list(kept):
            without = [one for one in kept if one != part]
            if solve(session, keep(question, without)) is None:
                kept = without
    return kept


def blamed(session: Session, question: Question) -> list[list[Part]]:
    """Return every smallest conflict found by taking parts of the ones already found out of the question; five at most.

    What clashes whatever is asked for comes first: no other request ends that.
    """
    found: list[list[Part]] = []
    parts = parts_of(question)
    facts = [one for one in parts if one[0] != "environments" and not _can_change(question, one[0])]
    open_questions = [facts, parts]
    seen: set[frozenset[Part]] = set()
    while open_questions and len(found) < MOST and len(seen) < 40:
        parts = open_questions.pop(0)
        if frozenset(parts) in seen:
            continue
        seen.add(frozenset(parts))
        if solve(session, keep(question, parts)) is not None:
            continue
        known = next((one for one in found if set(one) <= set(parts)), None)
        conflict = known or smallest_conflict(session, question, parts)
        if known is None:
            found.append(conflict)
        open_questions += [[one for one in parts if one != part] for part in conflict]
    return found
