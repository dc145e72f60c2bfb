# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why there is no stack: the smallest sets of wishes and facts that clash, and the rules that make them clash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

from .answer import Answer, Conflict
from .interpreters import INTERPRETER, PYTHONS
from .judge import Judge, Session
from .model import Problem, Slot, Solution
from .rule import REGISTRY, Rule
from .search import solve
from .suggest import instead
from .versions import version

# What a user can give up on is a wish; what only can be looked at is a fact. Facts are taken away first while looking
# for the smallest set, so that a fact is blamed only when no set of wishes clashes by itself.
Part = tuple[str, str]
MOST = 5


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
    needed = {"pytorch"} if "pytorch" not in problem.wishes or {"horovod", "pytorch_index"} & set(wishes) else set()
    if {"python", INTERPRETER} & set(wishes):
        needed |= set(problem.frameworks[:1])  # in some version: without a framework there is no environment
    frameworks = tuple(name for name in problem.frameworks if name in wishes or name in needed)
    return replace(
        problem,
        os=problem.os if "os" in names else None,
        arch=problem.arch if "arch" in names else None,
        gpus=tuple(gpu for gpu in problem.gpus if ("gpus", gpu.model) in parts),
        kernels=tuple(release for release in problem.kernels if ("kernels", release) in parts),
        ansible_core=problem.ansible_core if "ansible_core" in names else None,
        wishes=wishes,
        frameworks=frameworks,
        environments=problem.environments if ("environments", "one") in parts else "split",
    )


def smallest_conflict(session: Session, problem: Problem, parts: Sequence[Part]) -> list[Part]:
    """Return a set of parts that clashes while every smaller one works: take away whatever is not needed for the clash."""
    kept = list(parts)
    for part in parts:
        without = [one for one in kept if one != part]
        if solve(session, keep(problem, without)) is None:
            kept = without
    return kept


def conflicts(session: Session, problem: Problem) -> list[Conflict]:
    """Return every smallest conflict found by taking parts of the ones already found out of the question; five at most."""
    found: list[list[Part]] = []
    open_questions = [parts_of(problem)]
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
    return [describe(session, problem, conflict) for conflict in found]


def describe(session: Session, problem: Problem, parts: Sequence[Part]) -> Conflict:
    """Return a conflict in the shape users get it."""
    left = keep(problem, parts)
    rules = smallest_rules(session, left)
    reasons = [one for rule in rules for one in reasons_of(session, left, rule, rules)] or [unfillable(session, left)]
    values: dict[str, str] = {}
    for name, value in parts:
        if name == "os":
            value = f"{problem.system['id']} {problem.system['version']}"
        value = value or str(getattr(problem, name))
        values[name] = f"{values[name]}, {value}" if name in values else value
    hints = [rule.hint for rule in rules if rule.hint]
    if len(left.gpus) > 1:
        hints.append("put these GPUs into different hosts")
    return {
        "rule": rules[0].name if rules else "no-such-build",
        "rules": [rule.name for rule in rules],
        "between": sorted(values),
        "values": dict(sorted(values.items())),
        "reason": "; ".join(dict.fromkeys(reasons)),
        "suggestion": "; or ".join([*alternatives(session, left), *hints]) or None,
        "source": ", ".join(dict.fromkeys(source for rule in rules for source in rule.sources)),
    }


def alternatives(session: Session, problem: Problem) -> list[str]:
    """Return for every wish of a conflict alone what it could be instead."""
    found = []
    for name in sorted(problem.wishes):
        left = problem.without_wishes(name)
        solution = solve(session, left)
        value = instead(solution, name) if solution else None
        if value:
            found.append(f"set {name} to {value}")
    return found


def smallest_rules(session: Session, problem: Problem) -> list[Rule]:
    """Return the fewest rules that still make the problem unsolvable; none when a slot has no candidate to begin with."""
    rules = list(REGISTRY)
    if solve(session, problem, []) is None:
        return []
    step = len(rules) // 2
    while step:
        for start in range(0, len(rules), step):
            fewer = rules[:start] + rules[start + step :]
            if len(fewer) < len(rules) and solve(session, problem, fewer) is None:
                rules = fewer
                break
        else:
            step //= 2
    return rules


def unfillable(session: Session, problem: Problem) -> str:
    """Return why a slot has no candidate at all, whatever the rules say."""
    for slot in problem.slots():
        if not session.candidates(problem, slot):
            return _no_candidate(session, problem, slot)
    return "nothing fits"


def _no_candidate(session: Session, problem: Problem, slot: Slot) -> str:
    tag = problem.wishes.get("pytorch_index")
    if slot.component == "pytorch" and tag:
        never = session.tables.subjects["torch"]["never_existing_tags"]
        free = session.candidates(problem.without_wishes("pytorch_index"), slot)
        have = ", ".join(dict.fromkeys(one.variant for one in free)) or "none"
        if tag in never:
            return f"PyTorch never had an index {tag}; the builds are {have}"
        return f"PyTorch {problem.wishes.get('pytorch', '')} has no build {tag}; its builds are {have}"
    if slot.component == "python":
        return _no_python(problem)
    if slot.component == "driver" and problem.owner:
        return f"{problem.owner.name} is in charge of the driver, which is {problem.owner.version}"
    wishes = ", ".join(f"{name} {wish}" for name, wish in sorted(problem.wishes.items()))
    host = f" for {problem.os['id']} {problem.os['version']}" if problem.os else ""
    return f"there is no {slot.component}{host} with {wishes}"


def _no_python(problem: Problem) -> str:
    wish, path = problem.wishes.get("python"), problem.wishes.get(INTERPRETER, "")
    if path.startswith("/"):
        return f"{path} is not Python {wish}" if wish else f"{path} is no Python that environments are made with"
    have = sorted(PYTHONS, key=version)
    return f"environments are made with Python {have[0]} to {have[-1]}, not with {wish}"


def reasons_of(session: Session, problem: Problem, rule: Rule, rules: Sequence[Rule]) -> list[str]:
    """Return what a rule says about the stack one would get if only this rule were not; one sentence per kind of GPU."""
    judge = Judge(session, problem, [rule])
    said = []
    for solution in _solutions_without(session, problem, rule, rules):
        pools = [[one for slot, one in solution.items() if slot.component == kind] for kind in rule.choices]
        said += [reason for chosen in product(*pools) for reason in judge.reasons(rule, *chosen)][:1]
    return list(dict.fromkeys(said))


def _solutions_without(session: Session, problem: Problem, rule: Rule, rules: Sequence[Rule]) -> Iterable[Solution]:
    """Return the stack without a rule; where kinds of GPUs clash, the stack of each kind without the others."""
    if len(problem.gpus) > 1:
        alone = (solve(session, replace(problem, gpus=(gpu,)), rules) for gpu in problem.gpus)
        return [solution for solution in alone if solution]
    others = [one for one in REGISTRY if one is not rule], [one for one in rules if one is not rule]
    return [next(filter(None, (solve(session, problem, one) for one in others)), {})]


def conflict_line(conflict: Conflict) -> str:
    """Return one conflict as a sentence: who with whom, why, and what to set instead."""
    who = ", ".join(f"{name} {value}" for name, value in conflict["values"].items())
    return f"{who}: {conflict['reason']}" + (f" ({conflict['suggestion']})" if conflict["suggestion"] else "")


def conflict_message(answer: Answer) -> str:
    """Return all conflicts in one message, with what to ask for instead."""
    lines = [conflict_line(conflict) for conflict in answer["conflicts"]]
    if answer["suggestion"]:
        lines.append(f"What works: {answer['suggestion']['text']}")
    return "No stack fits this host and this request. " + ". ".join(lines) + "."
