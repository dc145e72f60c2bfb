# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every problem with what a user wrote that can be known before a host is touched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ..benchmark.plan import plan as plan_benchmark
from ..launch.request import SHORTEST_LEASE, check_numbers, least_nodes, plan_request
from ..problems.problem import Problem, ProblemError
from ..problems.scope import COMMAND_LINE
from ..stack.request_keys import ELSEWHERE
from .controller import controller_problems
from .inventory import group_problems, known_address_problems
from .options import value_problems
from .roles import role_problems
from .undefined import has_template, undefined_names
from .variables import find_unknown
from .world import UNRESOLVED, Resolve, World, settings

# Options of no role.
OWN = {"preflight_ignore": {"type": "list", "elements": "str"}}


def all_problems(
    world: World, roles: Mapping[str, Mapping[str, Any]], resolve: Resolve, ignore: Iterable[str] = ()
) -> tuple[list[Problem], list[Problem]]:
    """Return the problems, and what may be one and is only warned about.

    roles: role -> its options by name; ignore: variables of other roles
    """
    options = {name: option for role in roles.values() for name, option in role.items()} | OWN
    misspelt, warnings = name_problems(world, roles, [*ignore, *ignored(world)])
    found = inventory_problems(world, resolve) + misspelt + type_problems(world, options, resolve)
    return found + role_problems(world, resolve), warnings


def ignored(world: World) -> set[str]:
    """Return the names that the variable preflight_ignore lists, wherever it is set."""
    places = [*world.hosts.values(), world.play, world.command_line]
    values = [place.get("preflight_ignore") for place in places]
    lists = [value.split(",") if isinstance(value, str) else value for value in values]
    return {str(name) for names in lists if isinstance(names, (list, tuple)) for name in names}


def inventory_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return the problems of the group of GPU nodes, the limit and the nodes' cluster addresses."""
    nodes = {}
    for name in world.nodes:
        variables = world.hosts[name]
        address = resolve(name, variables.get("gpu_cluster_address"))
        facts = variables.get("ansible_facts") or {}
        if address is not UNRESOLVED:
            nodes[name] = {"gpu_cluster_address": address, "ansible_facts": facts}
    groups = group_problems(
        world.nodes, world.playing, world.limit, world.sources, world.missing_sources, bool(world.hosts)
    )
    return groups + known_address_problems(nodes)


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
                for one in map(_of_others, value_problems(name, resolved, options[name]))
            ]
    return problems


def undefined_problems(world: World, roles: Mapping[str, Mapping[str, Any]], resolve: Resolve) -> list[Problem]:
    """Return templates in the variables of role stack that use what nothing defines for a GPU node; facts come later.

    roles: role -> its options by name
    """
    declared = dict.fromkeys(name for role in roles.values() for name in role)
    problems = []
    for name, value, hosts in settings(world, roles["stack"]):
        lacking: dict[tuple[str, ...], list[str]] = {}
        members = set(hosts or world.nodes) if has_template(value) else set()
        for node in (one for one in world.nodes if one in members):
            known = {**declared, **world.hosts[node], **world.play, **world.command_line}
            undefined = undefined_names(value, known)
            # The template may do without, as with default.
            if undefined and not _is_whole(value, resolve, node):
                lacking.setdefault(tuple(sorted(undefined)), []).append(node)
        scope = world.scope(name, hosts)
        problems += [
            Problem("undefined_variable", name, {"scope": scope, "names": list(names), "nodes": nodes})
            for names, nodes in lacking.items()
        ]
    return problems


def planning_problems(world: World, roles: Mapping[str, Mapping[str, Any]], resolve: Resolve) -> list[Problem]:
    """Return the reasons why a plan could not be made or written. roles: role -> its options by name"""
    values = _values(world, roles["stack"], resolve)
    return undefined_problems(world, roles, resolve) + controller_problems(values)


def to_measure(world: World, resolve: Resolve, everyone: object = False) -> list[str]:
    """Return the nodes that a plan has to contact: those that the inventory does not describe, and those that it is asked to measure."""

    def is_wanted(node: str) -> bool:
        variables = world.hosts[node]
        described = variables.get("gpu_stack_host")
        if isinstance(described, str):  # a template; keys that have one do not make it empty
            described = resolve(node, described)
        return (
            described is UNRESOLVED
            or not described
            or boolean(resolve(node, variables.get("plan_measure")), strict=False)
        )

    return [node for node in world.nodes if boolean(everyone, strict=False) or is_wanted(node)]


def _is_whole(value: Any, resolve: Resolve, host: str) -> bool:
    """Return True if all the templates in a value can be resolved for a host."""
    if isinstance(value, Mapping):
        return all(_is_whole(one, resolve, host) for one in value.values())
    if isinstance(value, (list, tuple)):
        return all(_is_whole(one, resolve, host) for one in value)
    return resolve(host, value) is not UNRESOLVED


def _of_others(problem: Problem) -> Problem:
    """Return the problem; about a key of the request that another tool installs, it says where that comes from."""
    variable, _dot, key = problem.subject.partition(".")
    others = variable == "gpu_stack_request" and key in ELSEWHERE
    return Problem("key_of_others", key, {"reason": ELSEWHERE[key]}) if others else problem


def measured_problems(
    world: World,
    roles: Mapping[str, Mapping[str, Any]],
    resolve: Resolve,
    is_template: Callable[[Any], bool],
) -> list[Problem]:
    """Return templates whose values do not fit the options of the roles: resolved for each node of the play, whose facts are known.

    Other values are those of type_problems. roles: role -> its options by name
    """
    options = {name: option for role in roles.values() for name, option in role.items()}
    playing = [name for name in world.nodes if name in set(world.playing)]
    found: dict[tuple[str, str, str], tuple[Problem, str, list[str]]] = {}
    for name, value, hosts in settings(world, options):
        nodes = [node for node in playing if not hosts or node in hosts] if is_template(value) else []
        for node, problem in _of_nodes(name, value, nodes, options[name], resolve):
            key = (problem.code, problem.subject, repr(problem.detail))
            found.setdefault(key, (problem, name, []))[2].append(node)
    return [
        Problem(one.code, one.subject, {**one.detail, "scope": world.scope(name, nodes)})
        for one, name, nodes in found.values()
    ]


def _of_nodes(
    name: str, value: Any, nodes: Iterable[str], option: Mapping[str, Any], resolve: Resolve
) -> Iterator[tuple[str, Problem]]:
    for node in nodes:
        resolved = resolve(node, value)
        if resolved is not UNRESOLVED:
            yield from ((node, problem) for problem in value_problems(name, resolved, option))


def training_problems(
    world: World, options: Mapping[str, Mapping[str, Any]], resolve: Resolve, directories: Sequence[str], forks: int
) -> list[Problem]:
    """Return the reasons why a training could not start; what is not known yet is left to the role.

    options: those of role train; directories: where a relative path is looked for
    """
    values = _values(world, options, resolve)
    needed = ("train_nodes", "train_script", "train_files", "train_nproc_per_node", "train_port", "train_lease",
              "train_launcher", "train_min_nodes")  # fmt: skip
    if any(values[name] is UNRESOLVED for name in needed):
        return []
    nodes, script, files, nproc, port, lease, launcher, least = (values[name] for name in needed)
    try:
        check_numbers({**_numbers(values), "nproc_per_node": str(nproc), "port": int(port), "lease": int(lease)})
        plan = plan_request(
            list(world.nodes),
            nodes=nodes,
            script=script,
            files=files,
            directories=directories,
            playing=world.playing,
            forks=forks,
        )
        # Role train derives it from the launcher where it is not set.
        restarts = values["train_max_restarts"]
        enough = 1 if restarts is UNRESOLVED or restarts is None else int(restarts)
        asked = {"launcher": launcher, "min_nodes": int(least), "max_restarts": enough}
        least_nodes(asked, len(plan["nodes"]))
    except ProblemError as error:
        return list(error.problems)
    return []


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a training that are known, by the names that module torchrun has for them."""
    return {
        name.partition("_")[2]: value if isinstance(value, (int, float)) else int(value)
        for name, value in values.items()
        if isinstance(value, (int, float)) or (isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,9}", value))
    }


def benchmark_problems(
    world: World, options: Mapping[str, Mapping[str, Any]], resolve: Resolve, forks: int
) -> list[Problem]:
    """Return the reasons why a benchmark could not start; what is not known yet is left to the role. options: those of role benchmark."""
    values = _values(world, options, resolve)
    needed = ("benchmark_nodes", "benchmark_nproc_per_node", "benchmark_port")
    if any(values[name] is UNRESOLVED for name in needed):
        return []
    nodes, nproc, port = (values[name] for name in needed)
    try:
        check_numbers({"nproc_per_node": str(nproc), "port": int(port), "lease": SHORTEST_LEASE})
        plan_benchmark(world.nodes, nodes=nodes, playing=world.playing, forks=forks, nproc_per_node=str(nproc))
    except ProblemError as error:
        return list(error.problems)
    return []


def _values(world: World, options: Mapping[str, Mapping[str, Any]], resolve: Resolve) -> dict[str, Any]:
    """Return the values of a role's options, as the first node of the play has them."""
    host = next(name for name in world.nodes if name in world.playing)
    given = {**world.hosts[host], **world.command_line}
    return {name: resolve(host, given.get(name, option.get("default"))) for name, option in options.items()}
