# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find values that single roles refuse before a node is contacted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..environments import extras
from ..problems.problem import Problem
from ..stack.components import COMPONENTS
from ..stack.interpreters import CONDA, INTERPRETER, MANAGER, interpreter_problem, variables_problem
from ..subjects.firewall import request as firewall
from ..subjects.gpu_settings.request import refusal
from ..subjects.monitoring import request as monitoring
from ..subjects.nccl import request as nccl
from ..subjects.pcie import request as pcie
from ..subjects.qos import request as qos
from ..subjects.rdma import request as rdma
from ..subjects.scratch import request as scratch
from ..subjects.tuning import request as tuning
from ..subjects.tuning.tables import load
from .monitoring import combined_problems
from .world import UNRESOLVED, Resolve, World, settings

TUNING = ("tuning_sysctl", "tuning_limits", "tuning_limit_services", "tuning_irq_interfaces", "tuning_kernel_arguments")
NCCL = ("nccl_conf_variables", "nccl_conf_elsewhere")


def role_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return what the roles refuse, in the order of their names, then what playbook plan refuses."""
    judges = (
        firewall_problems, gpu_settings_problems, monitoring_problems, nccl_problems, pcie_problems, interpreter_problems, package_problems,
        qos_problems, rdma_problems, scratch_problems, tuning_problems, explain_problems,
    )  # fmt: skip
    return [problem for judge in judges for problem in judge(world, resolve)]


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


def tuning_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return what role tuning refuses by name."""
    return refused(world, resolve, TUNING, lambda given: tuning.problems(tuning.request(given), load()))


def gpu_settings_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return declarations of GPU settings that cannot be meant; what a GPU takes is known on its node alone."""
    problems: list[Problem] = []
    for name, value, hosts in settings(world, ["gpu_settings_declaration"]):
        resolved = resolve(hosts[0] if hosts else None, value)
        reason = refusal(resolved) if resolved is not UNRESOLVED else ""
        if reason:
            detail = {"scope": world.scope(name, hosts), "reason": reason}
            problems.append(Problem("gpu_settings_declaration", name, detail))
    return problems


def monitoring_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return what role monitoring cannot be meant to do."""
    return refused(world, resolve, monitoring.DEFAULTS, monitoring.problems) + combined_problems(world, resolve)


def nccl_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return what role nccl refuses to write into NCCL's file."""
    return refused(world, resolve, NCCL, lambda given: nccl.problems(nccl.request(given)))


def pcie_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return what role pcie cannot be meant to set."""
    return refused(world, resolve, pcie.DEFAULTS, lambda given: pcie.problems(pcie.request(given)))


def rdma_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return what role rdma cannot do."""
    return refused(world, resolve, rdma.DEFAULTS, rdma.problems)


def scratch_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return what role scratch refuses before it looks at disks."""
    return refused(world, resolve, scratch.DEFAULTS, lambda given: scratch.problems(scratch.request(given)))


def refused(
    world: World, resolve: Resolve, names: Iterable[str], judge: Callable[[Mapping[str, Any]], Iterable[Problem]]
) -> list[Problem]:
    """Return what ``judge`` refuses of each value; values of the wrong type are told by type_problems."""
    problems: list[Problem] = []
    for name, value, hosts in settings(world, names):
        resolved = resolve(hosts[0] if hosts else None, value)
        try:
            problems += [] if resolved in (UNRESOLVED, None) else list(judge({name: resolved}))
        except (AttributeError, TypeError, ValueError):
            continue
    return problems


def firewall_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return values of role firewall that cannot be meant, and interfaces that a measured node lacks."""
    problems: list[Problem] = []
    for name, value, hosts in settings(world, firewall.DEFAULTS):
        resolved = resolve(hosts[0] if hosts else None, value)
        if resolved not in (UNRESOLVED, None):
            problems += firewall.problems({name: resolved})
        if name == "firewall_interfaces" and resolved is not UNRESOLVED:
            problems += _lacking(world, hosts, firewall.given({name: resolved})[name])
    return problems


def _lacking(world: World, hosts: Iterable[str], names: Iterable[str]) -> Iterator[Problem]:
    """Yield interfaces that a node does not have, where its facts are known."""
    for host in hosts:
        held = (world.hosts[host].get("ansible_facts") or {}).get("interfaces") or []
        for one in names if held else ():
            # Ansible's fact writes "_" for what is not a letter or digit.
            if not {str(one), re.sub(r"\W", "_", str(one))} & set(held):
                yield Problem("firewall_lacks_interface", str(one), {"nodes": [host], "interfaces": sorted(held)})


def qos_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return values of role qos that cannot be meant, and interfaces that are too fast or not there, where facts are known."""
    problems: list[Problem] = []
    for name, value, hosts in settings(world, qos.DEFAULTS):
        resolved = resolve(hosts[0] if hosts else None, value)
        if resolved not in (UNRESOLVED, None):
            problems += qos.problems({name: resolved})
    for host in world.nodes:
        given = {**world.hosts[host], **world.play, **world.command_line}
        if given.get("qos_state") == "present":
            names: list[str] = [name for name in ("qos_rate", "qos_interfaces") if name in given]
            known: dict[str, Any] = {name: resolve(host, given[name]) for name in names}
            if not any(value is UNRESOLVED for value in known.values()):
                problems += qos.link_problems(host, {**given, **known})
    return problems
