# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuning as plain values: variables and facts in, what modules and checks need out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...documents.comparison import Comparison
from ...documents.gpu_node import GpuNode
from ...documents.parsing import parse
from ...documents.tuning import TunedNode
from ...problems.text import describe
from .compare import compare_tuning, compare_unmeasured, compare_untuned
from .decide import Decision, Left, decide
from .plan import plan
from .request import Request, problems, request
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
    return {"sysctl": sorted(keys), "services": list(wanted.services), "interfaces": list(wanted.interfaces)}


def answer(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return {plan: options of module tuning, problems: sentences, left: what a node does not get, as sentences}.

    Raise DocumentError for facts of the wrong shape.
    """
    wanted, node, decision = _decide(variables, facts)
    found = [*problems(wanted, load()), *decision.problems]
    return {
        "plan": plan(decision, wanted, node),
        "problems": [describe(one) for one in found],
        "left": [_left(one) for one in decision.left if one.why in WHY],
    }


def comparisons(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> list[Comparison]:
    """Return every comparison of a node's tuning; raise DocumentError for facts of the wrong shape."""
    if not request(variables).present:
        state = facts.get("gpu_node_state") or {}
        return compare_untuned(bool(state.get("tuning_recorded")))
    if not facts.get("gpu_tuning"):
        return compare_unmeasured()
    wanted, node, decision = _decide(variables, facts)
    return compare_tuning(decision, wanted, node)


def _decide(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> tuple[Request, TunedNode, Decision]:
    wanted = request(variables)
    node = parse(TunedNode, facts.get("gpu_tuning") or {}, "gpu_tuning")
    gpu_node = parse(GpuNode, facts.get("gpu_node") or {}, "gpu_node")
    return wanted, node, decide(wanted, node, gpu_node, load())


def _left(one: Left) -> str:
    subject = f"{one.setting.subject} {one.setting.value}" if one.why == "ceiling" else one.setting.subject
    return f"{subject} ({WHY[one.why]})"
