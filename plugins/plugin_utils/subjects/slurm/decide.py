# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide what the files for a cluster's Slurm say, on a host that controls it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....module_utils.settings.slurm import FILES
from ...cluster.address import cluster_address
from ...documents.gpu_node import GpuNode
from ...documents.parsing import parse
from ...documents.slurm import SlurmNode
from ...problems.problem import Problem, ProblemError
from ..subject import Decision, Node
from . import health, lines, versions
from .model import SlurmModel, model
from .request import CONTROLLERS, NODES, PRESENT, Request, problems, request, state_of

NOT_INCLUDED = "{host} does not use {file} yet: add the line 'Include {file}' to {directory}/{parent}."
NOT_NAMED = (
    "Slurm of {host} does not start the programs of the role for the health of {nodes} yet: docs/slurm.md has the lines for "
    "{directory}/slurm.conf."
)
NOT_SENT = (
    "Slurm {version} does not send included files to nodes that have no slurm.conf of their own; give them {gres} and {nodes} as you "
    "give them slurm.conf."
)


def decide_files(node: Node) -> Decision:
    """Return the files as options of module tuning; raise DocumentError for facts of the wrong shape.

    Where a single node is not known, nothing is written: jobs of a node that is no longer named would end.
    """
    found = tuple(problems(node.variables))
    if found or node.name not in (node.groups.get(CONTROLLERS) or ()):
        return Decision(problems=found, applies=bool(found))
    wanted = request(node.variables)
    measured = parse(SlurmNode, node.facts.get("gpu_slurm") or {}, "gpu_slurm")
    version = wanted.version or measured.version or ""
    if not version:
        return Decision(problems=(Problem("slurm_unknown_version", node.name),))
    if not measured.configured:
        return Decision(problems=(Problem("slurm_not_configured", node.name, {"directory": wanted.directory}),))
    models, refused = models_of(node)
    requests = {name: request(node.known[name]) for name in models}
    refused += unfit(version, requests, models)
    if refused:
        return Decision(problems=tuple(refused))
    contents = lines.files((models[name], requests[name].autodetect) for name in models)
    files = [{"path": f"{wanted.directory}/{file}", "content": text, "mode": "0644"} for file, text in contents.items()]
    left = in_use(node.name, measured, keeps=[str(one["path"]) for one in files])
    if left:
        return Decision(problems=tuple(left))
    watched = [name for name in models if health.is_asked(node.known[name])]
    return Decision({"files": files}, notes=tuple(_notes(node.name, wanted, measured, version, watched)))


def in_use(host: str, measured: SlurmNode, keeps: Sequence[str] = ()) -> list[Problem]:
    """Return the problem with files of ours that go while the cluster's configuration includes them: Slurm would not start again.

    keeps: paths of those that stay.
    """
    lines_left = [
        f"Include {path.rpartition('/')[2]} in {place}"
        for path, places in sorted(measured.included.items())
        for place in places
        if path not in keeps
    ]
    return [Problem("slurm_in_use", host, {"lines": lines_left})] if lines_left else []


def unfit(version: str, requests: Mapping[str, Request], models: Mapping[str, SlurmModel]) -> list[Problem]:
    """Return the problems with nodes that this version of Slurm does not take."""
    found = _same_names(models)
    found += [one for name in models for one in _inabilities(version, requests[name], models[name])]
    return found + [
        Problem("slurm_split_socket", name) for name in models if _is_split(version, requests[name], models[name])
    ]


def models_of(node: Node) -> tuple[dict[str, SlurmModel], list[Problem]]:
    """Return the nodes of the cluster by their names in the inventory, and the problems of the others."""
    known, models, found = node.known, {}, []  # type: Mapping[str, Mapping[str, Any]], dict[str, SlurmModel], list[Problem]
    state = state_of(node.variables)
    names = [name for name in node.groups.get(NODES) or () if name not in known or state_of(known[name]) == state]
    unknown = [name for name in names if not _is_measured((known.get(name) or {}).get("ansible_facts") or {})]
    if not names:
        found.append(Problem("slurm_no_nodes", node.name, {"state": state}))
    if unknown:
        found.append(Problem("slurm_unmeasured", ", ".join(unknown)))
    for name in names:
        if name not in unknown:
            try:
                found += problems(known[name])
                models[name] = model_of(name, known[name])
            except ProblemError as error:
                found += error.problems
    return models, found


def model_of(name: str, variables: Mapping[str, Any]) -> SlurmModel:
    """Return a node that was measured; raise ProblemError and DocumentError. variables: without problems."""
    facts = variables["ansible_facts"]
    measured, machine = parse(SlurmNode, facts["gpu_slurm"], "gpu_slurm"), parse(GpuNode, facts["gpu_node"], "gpu_node")
    found = model(name, measured, machine, request(variables))
    if state_of(variables) != PRESENT:
        return found
    address = cluster_address(variables)
    if not address:
        raise ProblemError(Problem("slurm_no_address", name))
    return replace(found, address=address)


def _is_measured(facts: Mapping[str, Any]) -> bool:
    return bool(facts.get("gpu_slurm")) and bool(facts.get("gpu_node"))


def _same_names(models: Mapping[str, SlurmModel]) -> list[Problem]:
    counts = Counter(one.name for one in models.values())
    return [
        Problem("slurm_same_name", name, {"nodes": [host for host, one in models.items() if one.name == name]})
        for name, count in counts.items()
        if count > 1
    ]


def _inabilities(version: str, wanted: Request, node: SlurmModel) -> Iterator[Problem]:
    """Yield the requests that this version of Slurm cannot fulfil."""
    cut = any(len(one.files) > 1 for one in node.devices)
    asked = {
        "explicit_gpus": True,
        "numa_node_as_socket": wanted.numa_node_as_socket,
        "detected_instances": wanted.autodetect == "nvml" and cut,
        "detection_without_nvml": wanted.autodetect == "nvidia",
    }
    for name, is_asked in asked.items():
        row = versions.load()[name]
        if is_asked and not versions.can(version, name):
            yield Problem("slurm_cannot", version, {"meaning": row.meaning, "since": row.since})


def _is_split(version: str, wanted: Request, node: SlurmModel) -> bool:
    """Return True if slurmctld would refuse what its plugin detects on the node."""
    return wanted.autodetect == "nvml" and node.splits and versions.can(version, "whole_sockets")


def _notes(host: str, wanted: Request, measured: SlurmNode, version: str, watched: Sequence[str]) -> Iterator[str]:
    """Yield notes on the work that is left to those who run the cluster."""
    for file, parent in FILES.items():
        if not measured.included.get(f"{wanted.directory}/{file}"):
            yield NOT_INCLUDED.format(host=host, file=file, directory=wanted.directory, parent=parent)
    if not versions.can(version, "sent_includes"):
        yield NOT_SENT.format(version=version, gres=lines.GRES, nodes=lines.NODES)
    if watched and not measured.named:
        yield NOT_NAMED.format(host=host, nodes=", ".join(watched), directory=wanted.directory)
