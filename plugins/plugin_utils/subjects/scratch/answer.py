# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scratch as plain values: variables and facts in, what the role and the checks need out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...documents.comparison import Comparison
from ...documents.parsing import parse
from ...documents.scratch import ScratchNode
from ...problems.problem import Problem
from ..subject import Decision, Node, Subject
from .compare import compare_scratch, compare_unmeasured, compare_unwanted
from .request import DEFAULTS, request
from .request import problems as request_problems
from .sentences import SENTENCES


def problems(variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems that are refused before disks are looked at."""
    return request_problems(request(variables))


def decide_scratch(node: Node) -> Decision:
    """Return the scratch as options of module scratch, which looks at the disks once more by itself."""
    wanted = request(node.variables)
    measured = node.facts.get("gpu_scratch") or {}
    found = tuple(request_problems(wanted))
    return Decision(None if found else wanted.arguments, found, packages=tuple(measured.get("packages") or ()))


def comparisons(node: Node) -> list[Comparison]:
    """Return every comparison of a node's scratch; raise DocumentError for facts of the wrong shape."""
    wanted = request(node.variables)
    if not wanted.present:
        return compare_unwanted(node.has_record("scratch"), wanted.mount_point)
    if not node.facts.get("gpu_scratch"):
        return compare_unmeasured(wanted.mount_point)
    return compare_scratch(wanted, parse(ScratchNode, node.facts["gpu_scratch"], "gpu_scratch"))


SUBJECT = Subject(
    name="scratch",
    defaults=DEFAULTS,
    problems=problems,
    compare=comparisons,
    reads=("cluster_ssh_user",),
    sentences=SENTENCES,
    facts="allreduce.gpu.scratch_facts",
    question=lambda variables: request(variables).question,
    applied_by="allreduce.gpu.scratch",
    decide=decide_scratch,
    refusal="{host} gets no scratch: ",
)
