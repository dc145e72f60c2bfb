# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of the nodes' Python environments, by the questions that the roles ask: locks, places, archives, rounds, builds. Pure.

A question names the variables that answer it: those of the node that asks, and those of all nodes of the play. What several nodes
have to agree on is asked once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ..cluster.address import cluster_address
from ..problems.problem import Problem
from ..problems.text import describe
from .builds import assign_builds, describe_builds, wheel_of
from .compiled_wheel import sha256, wheel_problem
from .conda import conda_environments, conda_problem
from .creation import environments_to_create
from .distribution import distribution
from .downloads import unchecked_builds
from .kept import CONDA, WHEELS, choose, new_locks, read_locks
from .locks import describe_environments
from .pins import lock_problem
from .places import describe_places, environment_directory, lock_files
from .project import project
from .settled import are_settled
from .sharing import leaders, marks, share
from .wheel_files import offered_wheels, planned_wheels

__all__ = ["QUESTIONS", "Question"]

Variables = Mapping[str, Any]
Nodes = Mapping[str, Variables]


@dataclass(frozen=True)
class Question:
    """A decision, and the variables that it depends on.

    answer: called with the variables of the node, and with those of the nodes of the play in their order; each has only what is named
    here and set for it. reads: variables of the node; shared: those of all nodes
    """

    answer: Callable[[Variables, Nodes], Any]
    reads: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


def _facts(variables: Variables) -> tuple[Any, Any]:
    facts = variables.get("ansible_facts") or {}
    return facts.get("gpu_stack"), facts.get("gpu_node_state")


def _is_on(variables: Variables, name: str) -> bool:
    return bool(boolean(variables.get(name, False), strict=False))


def _said(nodes: Nodes, name: str) -> dict[str, Any]:
    """Return a variable of the nodes that have it."""
    return {host: variables[name] for host, variables in nodes.items() if name in variables}


def _settled(own: Variables, nodes: Nodes) -> bool:
    relocks = any(_is_on(variables, "frameworks_relock") for variables in nodes.values())
    directory = own.get("python_env_locks")
    return not relocks and are_settled(map(_facts, nodes.values()), read_locks(directory) if directory else None)


def _missing(own: Variables, _nodes: Nodes) -> list[Any]:
    """Return the environments whose interpreter may be missing; what conda makes, module conda_env compares itself."""
    stack, state = _facts(own)
    return [one for one in environments_to_create(stack, state) if one["source"] != "conda"]


def _unchecked(own: Variables, _nodes: Nodes) -> list[str]:
    return unchecked_builds(own["__python_env_list_text"], own["__python_env_item"]["python"])


def _conda(own: Variables, _nodes: Nodes) -> dict[str, Any]:
    stack, _state = _facts(own)
    files = own["__python_env_conda_files"]["results"]
    channels, packages = own["python_env_conda_channels"], own["python_env_conda_packages"]
    relock = _is_on(own, "frameworks_relock")
    return dict(conda_environments(stack["environments"], stack["os"], files, channels, packages, relock=relock))


def _wheels_problem(text: str, environment: Mapping[str, Any]) -> Problem | None:
    return lock_problem(text, environment["requirements"])


def _locks(own: Variables, nodes: Nodes) -> dict[str, Any]:
    asked = _said(nodes, "__frameworks_environments")
    return dict(choose(asked, own.get("python_env_locks") or "", _wheels_problem))


def _conda_locks(own: Variables, nodes: Nodes) -> dict[str, Any]:
    def judge(text: str, _environment: Mapping[str, Any]) -> Problem | None:
        return conda_problem(text, own["python_env_conda_channels"])

    return dict(choose(_said(nodes, "__python_env_conda"), own.get("python_env_locks") or "", judge, CONDA))


def _new_locks(own: Variables, _nodes: Nodes) -> list[dict[str, str]]:
    """Return the locks that the controller is to keep, of wheels and of what conda brings."""
    directory = own.get("python_env_locks") or ""
    return [
        *new_locks(own.get("__frameworks_plan") or {}, directory, WHEELS),
        *new_locks(own.get("__python_env_conda_plan") or {}, directory, CONDA),
    ]


def _refused(own: Variables, _nodes: Nodes) -> str:
    """Return the reason why the lock that a node has solved is not one; empty where it is one."""
    problem = lock_problem(own["__frameworks_solved"], own["__frameworks_item"]["requirements"])
    return describe(problem) if problem else ""


def _conda_refused(own: Variables, _nodes: Nodes) -> str:
    problem = conda_problem(own["__python_env_conda_solved"], own["python_env_conda_channels"])
    return describe(problem) if problem else ""


def _conda_made(own: Variables, _nodes: Nodes) -> dict[str, Any]:
    """Return the lock of what conda makes, and where: next to what is in use, except for what was made before there were links.

    Empty where the plan has no environment for conda: the variables that only its tasks set are missing then.
    """
    stack, state = _facts(own)
    asked, plan = own.get("__python_env_conda") or {}, own.get("__python_env_conda_plan") or {}
    known = (state or {}).get("environments") or {}
    made = {}
    for one in stack["environments"]:
        name = one["name"]
        if name in asked:
            lock, found = plan[asked[name]["digest"]]["lock"], known.get(name) or {}
            stays = found.get("conda") and not found.get("target") and lock == asked[name]["former"]
            made[name] = {
                "lock": lock,
                "at": name if stays else environment_directory(one, stack["os"], "", lock),
            }
    return made


def _lock_files(own: Variables, _nodes: Nodes) -> list[dict[str, str]]:
    stack, state = _facts(own)
    root, locks = own["__python_env_root"], own["__frameworks_lock_directory"]
    return lock_files(stack["environments"], stack["os"], state or {}, root, locks)


def _environments(own: Variables, _nodes: Nodes) -> dict[str, Any]:
    """Return the node's environments with their valid locks; what was measured of those that conda has made since then is forgotten."""
    stack, state = _facts(own)
    remade = own.get("__frameworks_remade") or []
    known = (state or {}).get("environments") or {}
    return describe_environments(
        stack["environments"],
        stack["os"],
        own["__frameworks_files"]["results"],
        {name: one for name, one in known.items() if name not in remade},
        index_url=own.get("frameworks_index_url"),
        no_index=_is_on(own, "python_env_no_index"),
        relock=_is_on(own, "frameworks_relock") or bool(remade) and _is_on(own, "__python_env_relocked"),
    )


def _places(own: Variables, _nodes: Nodes) -> dict[str, Any]:
    stack, state = _facts(own)
    return describe_places(
        stack["environments"],
        stack["os"],
        own["__frameworks_environments"],
        own["__frameworks_plan"],
        state or {},
        own["__python_env_conda_made"],
        own.get("__frameworks_remade") or [],
    )


def _changes(_own: Variables, nodes: Nodes) -> bool:
    places = _said(nodes, "__frameworks_places").values()
    return any(place["switch"] for of_node in places for place in of_node.values())


def _markers(_own: Variables, nodes: Nodes) -> dict[str, str]:
    paths = {host: (variables.get("__frameworks_marker") or {}).get("path") for host, variables in nodes.items()}
    return marks({host: path for host, path in paths.items() if path})


def _shares(own: Variables, nodes: Nodes) -> dict[str, Any]:
    places = _said(nodes, "__frameworks_places")
    seen = {host: (nodes[host].get("__frameworks_seen_markers") or {}).get("stdout_lines", []) for host in places}
    made = {host: name for host, name in own["__frameworks_markers"].items() if host in places}
    return share(places, leaders(made, seen), made)


def _archives(own: Variables, nodes: Nodes) -> dict[str, Any]:
    places = _said(nodes, "__frameworks_places")
    gives = _is_on(own, "__frameworks_distribute")
    return distribution(places, {host: cluster_address(nodes[host]) if gives else None for host in places})


def _wheel_files(own: Variables, _nodes: Nodes) -> list[dict[str, str]]:
    return planned_wheels(own["__frameworks_pylock"]["stdout"], own["__frameworks_lock"])


def _offered(own: Variables, _nodes: Nodes) -> list[dict[str, Any]]:
    return offered_wheels(own["__frameworks_wheels"], own["__frameworks_downloaded"].get("wheels"))


def _builds(own: Variables, _nodes: Nodes) -> dict[str, Any]:
    """Return the node's builds. What role frameworks has made, and not yet activated, has no Horovod, whatever that in use has."""
    stack, state = _facts(own)
    places, plan = own["__frameworks_places"], own["__frameworks_plan"]
    locks = {name: plan[one["digest"]]["lock"] for name, one in own["__frameworks_environments"].items()}
    known = (state or {}).get("environments") or {}
    found = {name: one for name, one in known.items() if not (places.get(name) or {}).get("late")}
    return describe_builds(stack["environments"], stack["os"], locks, {**(state or {}), "environments": found})


def _wheels(own: Variables, nodes: Nodes) -> dict[str, Any]:
    """Return the wheel of each build: found by the node that gives it, or compiled there in this run; empty where that failed."""
    compiled = _said(nodes, "__horovod_compiled")
    return {
        digest: chosen["wheel"] or wheel_of(compiled.get(chosen["host"], {}).get(digest), chosen["version"]) or {}
        for digest, chosen in own["__horovod_plan"].items()
    }


def _wheel_refused(own: Variables, _nodes: Nodes) -> str:
    """Return the reason why a wheel that was fetched to the controller does not go on to other nodes; empty where it does."""
    digest, path = own["item"], Path(own["__horovod_fetched"])
    problem = wheel_problem(path, own["__horovod_plan"][digest]["version"])
    if problem is None and sha256(path) != own["__horovod_wheels"][digest]["sha256"]:
        problem = Problem("wheel_other", own["__horovod_wheels"][digest]["file"])
    return describe(problem) if problem else ""


# Of other nodes each fact by its name, so that the door judges it by its kind.
_PLANNED = ("ansible_facts.gpu_stack", "ansible_facts.gpu_node_state")
QUESTIONS = {
    # Of role python_env.
    "missing": Question(_missing, ("ansible_facts",)),
    "unchecked": Question(_unchecked, ("__python_env_list_text", "__python_env_item")),
    "conda": Question(
        _conda,
        (
            "ansible_facts",
            "__python_env_conda_files",
            "python_env_conda_channels",
            "python_env_conda_packages",
            "frameworks_relock",
        ),
    ),
    "conda_refused": Question(_conda_refused, ("__python_env_conda_solved", "python_env_conda_channels")),
    "conda_locks": Question(_conda_locks, ("python_env_conda_channels", "python_env_locks"), ("__python_env_conda",)),
    "conda_made": Question(_conda_made, ("ansible_facts", "__python_env_conda", "__python_env_conda_plan")),
    # Of role frameworks.
    "settled": Question(_settled, ("python_env_locks",), (*_PLANNED, "frameworks_relock")),
    "lock_files": Question(_lock_files, ("ansible_facts", "__python_env_root", "__frameworks_lock_directory")),
    "environments": Question(
        _environments,
        (
            "ansible_facts",
            "__frameworks_files",
            "__frameworks_remade",
            "__python_env_relocked",
            "frameworks_index_url",
            "frameworks_relock",
            "python_env_no_index",
        ),
    ),
    "locks": Question(_locks, ("python_env_locks",), ("__frameworks_environments",)),
    "refused": Question(_refused, ("__frameworks_item", "__frameworks_solved")),
    "new_locks": Question(_new_locks, ("__frameworks_plan", "__python_env_conda_plan", "python_env_locks")),
    "project": Question(lambda own, nodes: project(own["__frameworks_item"]), ("__frameworks_item",)),
    "places": Question(
        _places,
        (
            "ansible_facts",
            "__frameworks_environments",
            "__frameworks_plan",
            "__python_env_conda_made",
            "__frameworks_remade",
        ),
    ),
    "changes": Question(_changes, shared=("__frameworks_places",)),
    "markers": Question(_markers, shared=("__frameworks_marker.path",)),
    "shares": Question(
        _shares, ("__frameworks_markers",), ("__frameworks_places", "__frameworks_seen_markers.stdout_lines")
    ),
    "archives": Question(
        _archives,
        ("__frameworks_distribute",),
        ("__frameworks_places", "ansible_facts.default_ipv4.address", "gpu_cluster_address"),
    ),
    "wheel_files": Question(_wheel_files, ("__frameworks_pylock", "__frameworks_lock")),
    "offered": Question(_offered, ("__frameworks_wheels", "__frameworks_downloaded")),
    # Of role horovod.
    "builds": Question(
        _builds, ("ansible_facts", "__frameworks_environments", "__frameworks_places", "__frameworks_plan")
    ),
    "build_plan": Question(
        lambda own, nodes: assign_builds(_said(nodes, "__horovod_builds")), shared=("__horovod_builds",)
    ),
    "wheels": Question(_wheels, ("__horovod_plan",), ("__horovod_compiled",)),
    "wheel_refused": Question(_wheel_refused, ("item", "__horovod_fetched", "__horovod_plan", "__horovod_wheels")),
}
