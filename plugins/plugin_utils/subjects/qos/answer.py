# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares as plain values: variables and facts in, what modules and checks need out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...documents.comparison import Comparison
from ...documents.parsing import parse
from ...documents.qos import QosNode
from ...problems.problem import Problem
from ...problems.text import describe
from .compare import compare_absent, compare_shares, compare_unmeasured
from .decide import decide
from .nftables import table
from .plan import plan
from .request import GROUP, given, problems, request


def questions(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of module qos_facts: what has to be known for a decision."""
    return {"cgroups": [str(one).strip("/") for one in given(variables)["qos_cgroups"]]}


def answer(
    name: str,
    hostvars: Mapping[str, Mapping[str, Any]],
    groups: Mapping[str, Iterable[str]],
    facts: Mapping[str, Any],
    boot: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return {plan: options of module qos, problems: sentences}; raise DocumentError for facts of the wrong shape."""
    found: list[Problem] = list(problems(hostvars[name]))
    if found:
        return {"plan": None, "problems": [describe(one) for one in found]}
    wanted = request(name, hostvars, groups.get(GROUP, ()))
    shapings, found = decide(wanted, parse(QosNode, facts.get("gpu_qos") or {}, "gpu_qos"))
    return {"plan": plan(shapings, wanted, boot) if not found else None, "problems": [describe(one) for one in found]}


def comparisons(
    name: str, hostvars: Mapping[str, Mapping[str, Any]], groups: Mapping[str, Iterable[str]], facts: Mapping[str, Any]
) -> list[Comparison]:
    """Return every comparison of a node's shares; raise DocumentError for facts of the wrong shape."""
    if str(hostvars[name].get("qos_state") or "absent") != "present":
        return compare_absent(bool((facts.get("gpu_node_state") or {}).get("qos_recorded")))
    if not facts.get("gpu_qos") or any(True for _one in problems(hostvars[name])):
        return compare_unmeasured()
    wanted = request(name, hostvars, groups.get(GROUP, ()))
    node = parse(QosNode, facts["gpu_qos"], "gpu_qos")
    shapings, _found = decide(wanted, node)
    digest = table(wanted, [one.name for one in shapings])[1]
    return compare_shares(shapings, digest, node) if shapings else compare_unmeasured()
