# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every problem with what a user wrote that can be known before a host is touched."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..firewall import request as firewall
from ..launch.request import check_numbers, plan_request
from ..nccl import request as nccl
from ..pcie import request as pcie
from ..qos import request as qos
from ..rdma import request as rdma
from ..scratch import request as scratch
from ..stack.interpreters import INTERPRETER, interpreter_problem
from ..tuning import request as tuning
from ..tuning.tables import load
from .inventory import group_problems, known_address_problems
from .options import value_problems
from .problem import Problem, ProblemError
from .scope import COMMAND_LINE, Scope, scope_of
from .variables import find_unknown

GROUP = "gpu_nodes"
TUNING = ("tuning_sysctl", "tuning_limits", "tuning_limit_services", "tuning_irq_interfaces", "tuning_kernel_arguments")
NCCL = ("nccl_conf_variables", "nccl_conf_elsewhere")
# What a resolver of templates returns for a value that is not known yet.
UNRESOLVED = object()
Resolve = Callable[[str | None, Any], Any]


@dataclass(frozen=True)
class World:
    """What a user wrote. hosts: unresolved variables by host; command_line, play: those set there."""

    hosts: Mapping[str, Mapping[str, Any]]
    groups: Mapping[str, Sequence[str]]
    playing: Sequence[str]
    limit: str | None = None
    sources: Sequence[str] = ()
    command_line: Mapping[str, Any] = field(default_factory=dict)
    play: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nodes(self) -> Sequence[str]:
        return self.groups.get(GROUP) or ()

    def names(self) -> dict[str, set[str]]:
        """Return the hosts by name of variable; names that only the play has are of no host."""
        found: dict[str, set[str]] = {name: set() for name in [*self.command_line, *self.play]}
        for host, variables in self.hosts.items():
            for name in variables:
                found.setdefault(name, set()).add(host)
        return found

    def scope(self, name: str, hosts: Iterable[str]) -> Scope:
        return COMMAND_LINE if name in self.command_line else scope_of(hosts, self.groups)


class Setting(NamedTuple):
    """A distinct value of a variable and the hosts that have it; none where only the play has it."""

    name: str
    value: Any
    hosts: list[str]


def all_problems(
    world: World, roles: Mapping[str, Mapping[str, Any]], resolve: Resolve, ignore: Iterable[str] = ()
) -> tuple[list[Problem], list[Problem]]:
    """Return the problems, and what may be one and is only warned about.

    roles: role -> its options by name; ignore: variables of somebody else
    """
    options = {name: option for role in roles.values() for name, option in role.items()}
    misspelt, warnings = name_problems(world, roles, [*ignore, *ignored(world)])
    found = inventory_problems(world, resolve) + misspelt + type_problems(world, options, resolve)
    found += interpreter_problems(world, resolve) + tuning_problems(world, resolve)
    for problems in (firewall_problems, nccl_problems, pcie_problems, qos_problems, rdma_problems, scratch_problems):
        found += problems(world, resolve)
    return found, warnings


def ignored(world: World) -> set[str]:
    """Return what the variable preflight_ignore lists, wherever it is set."""
    places = [*world.hosts.values(), world.play, world.command_line]
    values = [place.get("preflight_ignore") or [] for place in places]
    return {name for value in values for name in (value.split(",") if isinstance(value, str) else value)}


def inventory_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return what is wrong with the group of GPU nodes, the limit and the nodes' cluster addresses."""
    nodes = {}
    for name in world.nodes:
        variables = world.hosts[name]
        address = resolve(name, variables.get("gpu_cluster_address"))
        facts = variables.get("ansible_facts") or {}
        if address is not UNRESOLVED:
            nodes[name] = {"gpu_cluster_address": address, "ansible_facts": facts}
    return group_problems(world.nodes, world.playing, world.limit, world.sources) + known_address_problems(nodes)


def name_problems(
    world: World, declared: Mapping[str, Mapping[str, Any]], ignore: Iterable[str] = ()
) -> tuple[list[Problem], list[Problem]]:
    """Return misspelt variables, and those about which one can only warn.

    declared: role -> its options by name
    """
    names = world.names()
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for finding in find_unknown(names, declared, ignore):
        scope = world.scope(finding.name, names[finding.name])
        problem = (
            Problem("misspelt_variable", finding.name, {"scope": scope, "nearest": finding.nearest})
            if finding.nearest
            else Problem("unknown_variable", finding.name, {"scope": scope, "role": finding.role})
        )
        (problems if finding.is_certain or scope == COMMAND_LINE else warnings).append(problem)
    return problems, warnings


def type_problems(world: World, options: Mapping[str, Mapping[str, Any]], resolve: Resolve) -> list[Problem]:
    """Return values that do not fit the options of the roles; a template is resolved for one of its hosts."""
    problems = []
    for name, value, hosts in settings(world, options):
        resolved = resolve(hosts[0] if hosts else None, value)
        if resolved is not UNRESOLVED:
            scope = world.scope(name, hosts)
            problems += [
                Problem(one.code, one.subject, {**one.detail, "scope": scope})
                for one in value_problems(name, resolved, options[name])
            ]
    return problems


def interpreter_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return values of python_env_python that say no place; whether a host has such a Python is the plan's to say."""
    problems = []
    for name, value, hosts in settings(world, [INTERPRETER]):
        resolved = resolve(hosts[0] if hosts else None, value)
        one = interpreter_problem(resolved) if resolved not in (UNRESOLVED, None, "") else None
        if one:
            problems.append(Problem(one.code, one.subject, {**one.detail, "scope": world.scope(name, hosts)}))
    return problems


def tuning_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return what role tuning refuses by name."""
    return refused(world, resolve, TUNING, lambda given: tuning.problems(tuning.request(given), load()))


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
            # Ansible's fact writes "_" for what is no letter or digit.
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


def settings(world: World, names: Iterable[str]) -> Iterator[Setting]:
    """Yield each distinct value of these variables once, whatever the number of hosts."""
    for name in sorted(names):
        outside = {**world.play, **world.command_line}
        if name in outside:
            yield Setting(name, outside[name], [])
            continue
        found: dict[str, Setting] = {}
        for host, variables in world.hosts.items():
            if name in variables:
                found.setdefault(_key(variables[name]), Setting(name, variables[name], [])).hosts.append(host)
        yield from found.values()


def _key(value: Any) -> str:
    """Return one text for equal values; encrypted ones are not opened for it."""
    try:
        return json.dumps(value, default=id)
    except TypeError:  # keys that are no text
        return repr(value)


def training_problems(
    world: World, options: Mapping[str, Mapping[str, Any]], resolve: Resolve, directories: Sequence[str], forks: int
) -> list[Problem]:
    """Return why a training could not start; what is not known yet is left to the role.

    options: those of role train; directories: where a relative path is looked for
    """
    host = next(name for name in world.nodes if name in world.playing)
    given = {**world.hosts[host], **world.command_line}
    values = {name: resolve(host, given.get(name, option.get("default"))) for name, option in options.items()}
    needed = ("train_nodes", "train_script", "train_files", "train_nproc_per_node", "train_port", "train_lease")
    if any(values[name] is UNRESOLVED for name in needed):
        return []
    nodes, script, files, nproc, port, lease = (values[name] for name in needed)
    try:
        check_numbers({"nproc_per_node": str(nproc), "port": int(port), "lease": int(lease)})
        plan_request(
            list(world.nodes),
            nodes=nodes,
            script=script,
            files=files,
            directories=directories,
            playing=world.playing,
            forks=forks,
        )
    except ProblemError as error:
        return list(error.problems)
    return []
