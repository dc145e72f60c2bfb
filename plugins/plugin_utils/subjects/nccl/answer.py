# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file /etc/nccl.conf as plain values: variables and facts in, what the role and the checks need out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...cluster.address import cluster_address
from ...documents.comparison import Comparison
from ...documents.nccl import NcclNode
from ...documents.parsing import parse
from ...problems.text import describe
from .compare import compare_nccl, compare_unmeasured, compare_unwanted
from .decide import Line, decide, files
from .request import DEFAULTS, Request, problems, request

# What has to be known of a node's variables.
VARIABLES = (*DEFAULTS, "gpu_cluster_address")


def answer(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return {files: for module tuning, problems: sentences, dropped: variables of another's file that ours does not have}.

    Raise DocumentError for facts of the wrong shape.
    """
    wanted, node, lines = _decide(variables, facts)
    kept = {one.name for one in lines}
    return {
        "files": files(lines, node),
        "problems": [describe(one) for one in problems(wanted)],
        "dropped": [] if node.recorded else sorted({name.strip() for name in node.variables} - kept),
    }


def comparisons(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> list[Comparison]:
    """Return every comparison of what NCCL is told; raise DocumentError for facts of the wrong shape."""
    if not request(variables).present:
        state = facts.get("gpu_node_state") or {}
        return compare_unwanted(bool(state.get("nccl_conf_recorded")))
    if not facts.get("gpu_nccl"):
        return compare_unmeasured()
    wanted, node, lines = _decide(variables, facts)
    return compare_nccl(lines, wanted, node)


def _decide(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> tuple[Request, NcclNode, tuple[Line, ...]]:
    wanted = request(variables)
    node = parse(NcclNode, facts.get("gpu_nccl") or {}, "gpu_nccl")
    address = cluster_address({**variables, "ansible_facts": facts})
    return wanted, node, decide(wanted, node, facts.get("gpu_node") or {}, address)
