# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nearest request that works: as few wishes given up as possible, then the newest versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from .answer import Conflict, Suggestion
from .interpreters import INTERPRETER
from .judge import Session
from .kinds import on_host
from .libraries import Version
from .model import FRAMEWORKS, ORDER, AnyCandidate, Problem, Solution
from .search import solve
from .versions import version

# A part of a problem, what solves it, and the wishes given up.
Relaxed = tuple[Problem, Solution, tuple[str, ...]]


def suggestion(session: Session, problem: Problem, found: Sequence[Conflict]) -> Suggestion | None:
    """Return the request to make instead, what changes, and in one sentence what would work; None when nothing would."""
    relaxed = _with_fewer_wishes(session, problem, found)
    if relaxed is None:
        return None
    left, solution, given_up = relaxed
    request = dict(left.wishes)
    changes = {name: instead(solution, name) for name in given_up}
    request.update({name: value for name, value in changes.items() if value and name != "environments"})
    request.pop(INTERPRETER, None)  # a variable beside the request
    if left.environments != problem.environments:
        request["environments"] = changes["environments"] = left.environments
    if left.frameworks != problem.frameworks:
        changes.update({name: None for name in problem.frameworks if name not in left.frameworks})
    return {"request": dict(sorted(request.items())), "changes": changes, "text": _text(changes, solution)}


def _with_fewer_wishes(session: Session, problem: Problem, found: Sequence[Conflict]) -> Relaxed | None:
    """Return what works with the smallest number of wishes given up; every conflict must lose a part."""
    loose = sorted(problem.wishes)
    if problem.environments == "one" and len(problem.frameworks) > 1:
        loose.append("environments")
    for count in range(1, len(loose) + 1):
        answers: list[Relaxed] = []
        for names in combinations(loose, count):
            if all(set(names) & set(conflict["between"]) for conflict in found):
                answers += _solutions(session, problem, names)
        if answers:
            return max(answers, key=lambda answer: (len(answer[0].frameworks), *_newness(answer[1])))
    return None


def _solutions(session: Session, problem: Problem, names: tuple[str, ...]) -> list[Relaxed]:
    """Return what works without these wishes: the component stays, in a version of the resolver's choice, or else goes."""
    kept = problem.without_wishes(*names)
    kept = replace(kept, environments="split") if "environments" in names else kept
    solution = solve(session, kept)
    if solution is not None:
        return [(kept, solution, names)]
    optional = [name for name in names if name in FRAMEWORKS and len(kept.frameworks) > 1]
    for name in optional:
        smaller = replace(kept, frameworks=tuple(one for one in kept.frameworks if one != name))
        # Horovod is nothing without what it is built for.
        solution = solve(session, smaller) if smaller.frameworks != ("horovod",) else None
        if solution is not None:
            return [(smaller, solution, names)]
    return []


def _newness(solution: Solution) -> tuple[Version, ...]:
    """Comparable; unreleased sources count as old."""
    newest = {slot.component: version(one.version) for slot, one in solution.items() if not one.absent}
    none = version("0")
    return tuple(none if newest.get(name, none).is_devrelease else newest.get(name, none) for name in ORDER)


def _value(solution: Solution, name: str) -> str | None:
    """Return the version a solution has for a wish; None for wishes that are no version, or when environments differ."""
    slot_name = {"pytorch_index": "pytorch", INTERPRETER: "python"}.get(name, name)
    values = {_shown(one, name) for slot, one in solution.items() if slot.component == slot_name and not one.absent}
    return values.pop() if len(values) == 1 else None


def _shown(one: AnyCandidate, name: str) -> str:
    if name == "driver":
        return str(one.row["branch"]["branch"])
    return one.variant if name in ("pytorch_index", INTERPRETER) else one.version


def instead(solution: Solution, name: str) -> str | None:
    """Return what a solution has where a wish was given up."""
    driver = on_host(solution).get("driver")
    if driver and name == "kernel_modules":
        return driver.row["kernel_modules"]
    if driver and name == "driver_source":
        return driver.row["source"]
    return _value(solution, name)


def _text(changes: Mapping[str, str | None], solution: Solution) -> str:
    dropped = {name: "none" if name in FRAMEWORKS else "left open" for name, value in changes.items() if not value}
    said = [f"{name}: {value or dropped[name]}" for name, value in sorted(changes.items())]
    whole = [
        str(one)
        for slot, one in solution.items()
        if not one.absent and slot.component in ("driver", "cuda", *FRAMEWORKS)
    ]
    return f"{', '.join(said)} (then {', '.join(dict.fromkeys(whole))})"
