# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which wishes and facts are to blame where there is no stack: the smallest sets of them that clash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .components import DEFAULT, FRAMEWORKS, component, is_brought, key_of
from .interpreters import INTERPRETER
from .judge import Session
from .model import Problem
from .search import solve

# What a user can give up on is a wish; what only can be looked at is a fact. Facts are taken away first while looking
# for the smallest set, so that a fact is blamed only when no set of wishes clashes by itself.
Part = tuple[str, str]
MOST = 5
# Wishes that mean the default framework without naming it: for its build, or for what is made for it.
OF_THE_DEFAULT = {*component(DEFAULT).reads, *(name for name in FRAMEWORKS if DEFAULT in component(name).beside)} - {
    DEFAULT
}


def parts_of(problem: Problem) -> list[Part]:
    """Return everything that could be part of a conflict, facts first."""
    facts = [("gpus", gpu.model) for gpu in problem.gpus] + [("kernels", release) for release in problem.kernels]
    facts += [("os", ""), ("arch", ""), ("ansible_core", "")]
    shared = [("environments", "one")] if problem.environments == "one" and len(problem.frameworks) > 1 else []
    return facts + shared + sorted(problem.wishes.items())


def keep(problem: Problem, parts: Iterable[Part]) -> Problem:
    """Return the problem that is left with only these parts."""
    parts = set(parts)
    names = {name for name, _value in parts}
    wishes = {name: wish for name, wish in problem.wishes.items() if name in names}
    unasked = DEFAULT not in problem.wishes and not is_brought(problem.wishes)
    default = unasked or bool(OF_THE_DEFAULT & set(wishes))
    frameworks = tuple(name for name in problem.frameworks if name in wishes or (default and name == DEFAULT))
    return replace(
        problem,
        os=problem.os if "os" in names else None,
        arch=problem.arch if "arch" in names else None,
        wheels=problem.wheels if "arch" in names else None,
        gpus=tuple(gpu for gpu in problem.gpus if ("gpus", gpu.model) in parts),
        kernels=tuple(release for release in problem.kernels if ("kernels", release) in parts),
        ansible_core=problem.ansible_core if "ansible_core" in names else None,
        wishes=wishes,
        frameworks=frameworks,
        environments=problem.environments if ("environments", "one") in parts else "split",
        bare_environment=bool({"python", INTERPRETER} & set(wishes)),
    )


def _can_change(problem: Problem, name: str) -> bool:
    """Return whether this is a wish that could have another value; some say what the host has."""
    return name in problem.wishes and not key_of(name)[1].declares


def smallest_conflict(session: Session, problem: Problem, parts: Sequence[Part]) -> list[Part]:
    """Return a set of parts that clashes while every smaller one works: take away whatever is not needed for the clash."""
    kept, before = list(parts), 0
    while len(kept) != before:  # as a rule once: what goes can take a framework with it that only stood for others
        before = len(kept)
        for part in list(kept):
            without = [one for one in kept if one != part]
            if solve(session, keep(problem, without)) is None:
                kept = without
    return kept


def blamed(session: Session, problem: Problem) -> list[list[Part]]:
    """Return every smallest conflict found by taking parts of the ones already found out of the question; five at most.

    What clashes whatever is wished for comes first: no other request ends that.
    """
    found: list[list[Part]] = []
    parts = parts_of(problem)
    facts = [one for one in parts if one[0] != "environments" and not _can_change(problem, one[0])]
    open_questions = [facts, parts]
    seen: set[frozenset[Part]] = set()
    while open_questions and len(found) < MOST and len(seen) < 40:
        parts = open_questions.pop(0)
        if frozenset(parts) in seen:
            continue
        seen.add(frozenset(parts))
        if solve(session, keep(problem, parts)) is not None:
            continue
        known = next((one for one in found if set(one) <= set(parts)), None)
        conflict = known or smallest_conflict(session, problem, parts)
        if known is None:
            found.append(conflict)
        open_questions += [[one for one in parts if one != part] for part in conflict]
    return found
