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
from ...problems import text as preflight_text
from .chain import chains
from .compare import compare_rdma, compare_unmeasured, compare_unset
from .gpudirect import Verdict, verdicts
from .plan import Driver, plan, problems
from .request import DEFAULTS, request
from .request import problems as request_problems
from .text import describe


def answer(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return {present: whether the node has adapters, plan: options of module rdma, problems: sentences, found: sentences}.

    found: how lossless each port is where no fabric is declared. Raise DocumentError for facts of the wrong shape.
    """
    asked = list(request_problems({name: variables[name] for name in DEFAULTS if name in variables}))
    if asked:
        return {
            "present": False,
            "plan": None,
            "problems": [preflight_text.describe(one) for one in asked],
            "found": [],
        }
    wanted, node = request(variables), _node(facts)
    return {
        "present": bool(node.adapters),
        "plan": plan(wanted, node, _driver(facts)),
        "problems": [preflight_text.describe(one) for one in problems(wanted, node)],
        "found": [describe(one.way) for one in chains(node, wanted.traffic_class)] if wanted.roce is None else [],
    }


def comparisons(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> list[Comparison]:
    """Return every comparison of a node's RDMA; raise DocumentError for facts of the wrong shape."""
    wanted = request(variables)
    if not wanted.present:
        return compare_unset(bool((facts.get("gpu_node_state") or {}).get("rdma_recorded")))
    if not facts.get("gpu_rdma"):
        return compare_unmeasured()
    has_gpus = bool(parse(GpuNode, facts.get("gpu_node") or {}, "gpu_node").gpus)
    return compare_rdma(wanted, _node(facts), _nccl(facts), has_gpus)


def adapters(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the adapters for the report; none where RDMA was not measured."""
    wanted, node = request(variables), _node(facts)
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
