# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file /etc/nccl.conf as plain values: variables and facts in, what the role and the checks need out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...cluster.address import cluster_address
from ...documents.comparison import Comparison
from ...documents.nccl import NcclNode
from ...documents.parsing import parse
from ...problems.problem import Problem
from ..subject import Decision, Node, Subject
from .compare import compare_nccl, compare_unmeasured, compare_unwanted
from .decide import Line, decide, files
from .request import DEFAULTS, Request, request
from .request import problems as request_problems
from .sentences import SENTENCES

# What a foreign file set that ours does not.
DROPPED = (
    "/etc/nccl.conf of {host} has {names}, for which no measurement gives a reason. The file is recorded and no longer applies; "
    "list in nccl_conf_variables what is to stay."
)


def problems(variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of NCCL's file that are refused."""
    return request_problems(request(variables))


def decide_conf(node: Node) -> Decision:
    """Return NCCL's file for module tuning, with what a foreign file no longer sets; raise DocumentError for facts of the wrong shape."""
    wanted, measured, lines = _decide(node)
    found = tuple(request_problems(wanted))
    kept = {one.name for one in lines}
    dropped = [] if measured.recorded else sorted({name.strip() for name in measured.variables} - kept)
    notes = (DROPPED.format(host=node.name, names=", ".join(dropped)),) if dropped else ()
    return Decision(None if found else {"files": files(lines, measured)}, found, notes=notes)


def comparisons(node: Node) -> list[Comparison]:
    """Return every comparison of what NCCL is told; raise DocumentError for facts of the wrong shape."""
    if not request(node.variables).present:
        return compare_unwanted(node.has_record("nccl_conf"))
    if not node.facts.get("gpu_nccl"):
        return compare_unmeasured()
    wanted, measured, lines = _decide(node)
    return compare_nccl(lines, wanted, measured)


def _decide(node: Node) -> tuple[Request, NcclNode, tuple[Line, ...]]:
    wanted = request(node.variables)
    measured = parse(NcclNode, node.facts.get("gpu_nccl") or {}, "gpu_nccl")
    address = cluster_address({**node.variables, "ansible_facts": node.facts})
    return wanted, measured, decide(wanted, measured, node.facts.get("gpu_node") or {}, address)


SUBJECT = Subject(
    name="nccl",
    defaults=DEFAULTS,
    problems=problems,
    compare=comparisons,
    reads=("gpu_cluster_address", "cluster_ssh_user"),
    sentences=SENTENCES,
    facts="allreduce.gpu.nccl_facts",
    question=lambda variables: {"user": str(variables.get("cluster_ssh_user") or "trainer")},
    applied_by="allreduce.gpu.tuning",
    options={"record": "nccl_conf"},
    decide=decide_conf,
    refusal="{host} keeps its /etc/nccl.conf: ",
)
