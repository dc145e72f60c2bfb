# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuning as plain values: variables and facts in, what modules and checks need out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...documents.comparison import Comparison
from ...documents.gpu_node import GpuNode
from ...documents.parsing import parse
from ...documents.tuning import TunedNode
from ...problems.problem import Problem
from ..subject import Decision, Node, Subject
from .compare import compare_tuning, compare_unmeasured, compare_untuned
from .decide import Decision as Settings
from .decide import Left, decide
from .plan import plan
from .request import DEFAULTS, Request, request
from .request import problems as request_problems
from .sentences import SENTENCES
from .tables import load

WHY = {
    "container": "the kernel belongs to the container's host",
    "absent": "this kernel or machine does not have it",
    "ceiling": "no process can have more here",
}


def questions(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of module tuning_facts: what has to be known for a decision."""
    wanted = request(variables)
    keys = {row.subject for row in load().settings if row.kind == "sysctl"} | set(wanted.sysctl)
    user = str(variables.get("cluster_ssh_user") or "root")
    return {
        "sysctl": sorted(keys),
        "services": list(wanted.services),
        "interfaces": list(wanted.interfaces),
        "user": user,
    }


def decide_settings(node: Node) -> Decision:
    """Return the settings as options of module tuning, with what the node keeps; raise DocumentError for facts of the wrong shape."""
    wanted, measured, settings = _decide(node)
    found = (*request_problems(wanted, load()), *settings.problems)
    options = plan(settings, wanted, measured)
    boots = options.pop("boot")
    left = ", ".join(_left(one) for one in settings.left if one.why in WHY)
    return Decision(
        None if found else {**options, "files": [*options["files"], *(node.boot if boots else ())]},
        found,
        notes=(f"{node.name} keeps {left}.",) if left else (),
    )


def comparisons(node: Node) -> list[Comparison]:
    """Return every comparison of a node's tuning; raise DocumentError for facts of the wrong shape."""
    if not request(node.variables).present:
        return compare_untuned(node.has_record("tuning"))
    if not node.facts.get("gpu_tuning"):
        return compare_unmeasured()
    wanted, measured, settings = _decide(node)
    return compare_tuning(settings, wanted, measured)


def problems(variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of values that are refused by name."""
    return request_problems(request(variables), load())


def _decide(node: Node) -> tuple[Request, TunedNode, Settings]:
    wanted = request({**node.variables, "groups": node.groups})
    measured = parse(TunedNode, node.facts.get("gpu_tuning") or {}, "gpu_tuning")
    gpu_node = parse(GpuNode, node.facts.get("gpu_node") or {}, "gpu_node")
    return wanted, measured, decide(wanted, measured, gpu_node, load())


def _left(one: Left) -> str:
    subject = f"{one.setting.subject} {one.setting.value}" if one.why == "ceiling" else one.setting.subject
    return f"{subject} ({WHY[one.why]})"


SUBJECT = Subject(
    name="tuning",
    defaults=DEFAULTS,
    problems=problems,
    compare=comparisons,
    sentences=SENTENCES,
    facts="allreduce.gpu.tuning_facts",
    reads=("cluster_ssh_user",),
    question=questions,
    probed="verify",
    applied_by="allreduce.gpu.tuning",
    decide=decide_settings,
    refusal="{host} is not tuned: ",
)
