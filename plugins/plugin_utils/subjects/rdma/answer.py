# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RDMA as plain values: variables and facts in, what modules and checks need out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ...documents.comparison import Comparison
from ...documents.gpu_node import GpuNode
from ...documents.parsing import parse
from ...documents.rdma import RdmaNode
from ...documents.stack import Stack
from ..subject import Decision, Node, Subject
from .chain import chains
from .compare import compare_rdma, compare_unmeasured, compare_unset
from .gpudirect import Verdict, verdicts
from .plan import Driver, plan, problems
from .request import DEFAULTS, request
from .request import problems as request_problems
from .sentences import SENTENCES
from .text import describe


def decide_adapters(node: Node) -> Decision:
    """Return the setup of ports, names and modules as options of module rdma; a node without adapters is left alone.

    notes: how lossless each port is, where no fabric is declared. Raise DocumentError for facts of the wrong shape.
    """
    asked = tuple(request_problems(node.variables))
    if asked:
        return Decision(problems=asked)
    wanted, measured = request(node.variables), _node(node.facts)
    found = tuple(problems(wanted, measured))
    options = plan(wanted, measured, _driver(node.facts))
    units = options.pop("units")
    if not measured.adapters:
        notes = [f"{node.name} has no RDMA adapter and is left alone."]
    else:
        ways = chains(measured, wanted.traffic_class) if wanted.roce is None else []
        notes = [describe(one.way) for one in ways]
    options["files"] += list(node.boot) if units else []
    return Decision(None if found else options, found, notes=tuple(notes), applies=bool(measured.adapters))


def comparisons(node: Node) -> list[Comparison]:
    """Return every comparison of a node's RDMA; raise DocumentError for facts of the wrong shape."""
    if node.variables.get("rdma_state") != "present":
        return compare_unset(node.has_record("rdma"))
    if not node.facts.get("gpu_rdma") or any(True for _one in request_problems(node.variables)):
        return compare_unmeasured()
    wanted, measured = request(node.variables), _node(node.facts)
    if not measured.adapters:  # such a node is left alone
        return compare_unset(node.has_record("rdma"))
    has_gpus = bool(parse(GpuNode, node.facts.get("gpu_node") or {}, "gpu_node").gpus)
    return compare_rdma(wanted, measured, _nccl(node.facts), has_gpus)


def adapters(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the adapters for the report; none where RDMA was not measured."""
    node = _node(facts)
    # Of what cannot be meant, others speak.
    wanted = request({name: variables[name] for name in ("rdma_gpudirect", "rdma_traffic_class") if name in variables})
    asked = wanted.gpudirect and bool(parse(GpuNode, facts.get("gpu_node") or {}, "gpu_node").gpus)
    paths = verdicts(node, _nccl(facts)) if asked else []
    ways = chains(node, wanted.traffic_class)
    return [
        {
            "name": one.name,
            "ports": [asdict(port) for port in one.ports],
            "gpudirect": [_path(found) for found in paths if found.adapter == one.name],
            "chains": [
                {"interface": way.interface, "whole": way.is_whole, "sentence": describe(way.way)}
                for way in ways
                if way.adapter == one.name
            ],
        }
        for one in node.adapters
    ]


def _path(found: Verdict) -> dict[str, Any]:
    return {"gpus": list(found.gpus), "path": found.path, "reasons": [describe(one) for one in found.reasons]}


def _node(facts: Mapping[str, Any]) -> RdmaNode:
    return parse(RdmaNode, facts.get("gpu_rdma") or {}, "gpu_rdma")


def _driver(facts: Mapping[str, Any]) -> Driver:
    planned = parse(Stack, facts.get("gpu_stack") or {}, "gpu_stack").driver
    measured = parse(GpuNode, facts.get("gpu_node") or {}, "gpu_node").driver
    is_loaded = bool(measured.loaded_version)
    return Driver(planned.kernel_modules, is_loaded, planned.branch) if planned else Driver(is_loaded=is_loaded)


def _nccl(facts: Mapping[str, Any]) -> list[str]:
    """Return the releases of NCCL that trainings of this node have: those of PyTorch's builds, and of the packages."""
    stack = parse(Stack, facts.get("gpu_stack") or {}, "gpu_stack")
    found = [one.libraries.nccl for one in stack.environments if one.libraries]
    return [version for version in (*found, stack.nccl.version if stack.nccl else None) if version]


SUBJECT = Subject(
    name="rdma",
    defaults=DEFAULTS,
    problems=request_problems,
    compare=comparisons,
    units=("opensm",),
    sentences=SENTENCES,
    facts="allreduce.gpu.rdma_facts",
    probed="verify",
    applied_by="allreduce.gpu.rdma",
    decide=decide_adapters,
    refusal="RDMA is not set up on {host}: ",
)
