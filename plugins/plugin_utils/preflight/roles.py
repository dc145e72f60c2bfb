# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find values that single roles refuse before a node is contacted."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..environments import extras
from ..problems.problem import Problem
from ..stack.components import COMPONENTS
from ..stack.interpreters import CONDA, INTERPRETER, MANAGER, interpreter_problem, variables_problem
from ..subjects import SUBJECTS
from ..subjects.subject import Node, Subject
from .world import UNRESOLVED, Resolve, World, settings

# What a value of the wrong type ends in, which type_problems tells.
WRONG_TYPE = (AttributeError, OverflowError, TypeError, ValueError)


def role_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return the problems that the roles refuse, those of settings in the order of their names, then those that playbook plan refuses."""
    subjects = sorted(SUBJECTS, key=lambda one: one.name)
    found = [problem for one in subjects for problem in subject_problems(world, resolve, one)]
    judges = (interpreter_problems, package_problems, explain_problems)
    return found + [problem for judge in judges for problem in judge(world, resolve)]


def subject_problems(world: World, resolve: Resolve, subject: Subject) -> list[Problem]:
    """Return values that cannot be meant, each distinct one once, and what does not fit a node, as far as facts are known."""
    problems: list[Problem] = []
    for name, value, hosts in settings(world, subject.defaults):
        resolved = resolve(hosts[0] if hosts else None, value)
        try:
            found = [] if resolved in (UNRESOLVED, None) else list(subject.problems({name: resolved}))
        except WRONG_TYPE:
            continue
        scope = world.scope(name, hosts)
        problems += [Problem(one.code, one.subject, {**one.detail, "scope": scope}) for one in found]
    return problems + misfits(world, resolve, subject)


def misfits(world: World, resolve: Resolve, subject: Subject) -> list[Problem]:
    """Return each problem of the subject's hosts once, those with variables that are not known yet left out."""
    found: list[Problem] = []
    if subject.misfits is None:
        return found
    for host in subject.hosts(world.groups):
        variables: Mapping[str, Any] = ChainMap(world.command_line, world.play, world.hosts.get(host, {}))  # type: ignore[arg-type]
        values = {name: resolve(host, variables[name]) for name in subject.defaults if name in variables}
        if values and UNRESOLVED not in values.values():
            node = Node(host, values, variables.get("ansible_facts") or {}, groups=world.groups)
            with suppress(*WRONG_TYPE):
                found += [one for one in subject.misfits(node) if one not in found]
    return found


def interpreter_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return values of python_env_python and python_env_manager that mean nothing; whether a host has such a Python the plan says."""
    problems = _beside_conda(world, resolve)
    for name, value, hosts in settings(world, [INTERPRETER]):
        resolved = resolve(hosts[0] if hosts else None, value)
        one = interpreter_problem(resolved) if resolved not in (UNRESOLVED, None, "") else None
        if one:
            problems.append(Problem(one.code, one.subject, {**one.detail, "scope": world.scope(name, hosts)}))
    return problems


def _beside_conda(world: World, resolve: Resolve) -> list[Problem]:
    """Return values of python_env_python that hosts have whose environments conda makes."""
    found: dict[str, list[str]] = {}
    for host, variables in world.hosts.items():
        given = {**variables, **world.play, **world.command_line}
        values = [resolve(host, given[name]) if given.get(name) else None for name in (MANAGER, INTERPRETER)]
        one = variables_problem(*values) if UNRESOLVED not in values else None
        if one and values[0] == CONDA and values[1] != CONDA:
            found.setdefault(str(values[1]), []).append(host)
    return [
        Problem("manager_interpreter", INTERPRETER, {"value": value, "scope": world.scope(INTERPRETER, hosts)})
        for value, hosts in found.items()
    ]


def package_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return packages of python_env_packages that cannot be asked for so."""
    found = []
    for name, value, hosts in settings(world, [extras.PACKAGES]):
        resolved = resolve(hosts[0] if hosts else None, value)
        if resolved is not UNRESOLVED and resolved not in (None, ""):
            scope = world.scope(name, hosts)
            found += [
                Problem(one.code, one.subject, {**one.detail, "scope": scope}) for one in extras.problems(resolved)
            ]
    return found


def explain_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return a component that playbook plan is to explain and that no stack has."""
    known = [one.name for one in COMPONENTS]
    asked = [resolve(None, value) for name, value in world.command_line.items() if name == "explain"]
    return [
        Problem("wrong_word", "explain", {"value": one, "choices": known})
        for one in asked
        if one not in ("", UNRESOLVED, *known)
    ]
