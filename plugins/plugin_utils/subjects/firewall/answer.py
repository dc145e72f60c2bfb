# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firewall as plain values: variables and facts in, what modules and checks need out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...documents.comparison import Comparison
from ...documents.firewall import FirewallNode
from ...documents.parsing import parse
from ...problems.problem import Problem
from ...problems.text import describe
from .compare import compare_absent, compare_rules, compare_unmeasured
from .decide import decide
from .plan import plan
from .request import GROUP, Request, problems, request, with_watchers


def answer(
    name: str,
    hostvars: Mapping[str, Mapping[str, Any]],
    groups: Mapping[str, Iterable[str]],
    facts: Mapping[str, Any],
    boot: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return {plan: options of module firewall, problems: sentences}; raise DocumentError for facts of the wrong shape."""
    found: list[Problem] = [one for node in {name, *groups.get(GROUP, ())} for one in problems(hostvars[node])]
    if found:
        return {"plan": None, "problems": sorted({describe(one) for one in found})}
    wanted = with_watchers(request(name, hostvars, groups.get(GROUP, ())), name, hostvars, groups)
    node = parse(FirewallNode, facts.get("gpu_firewall") or {}, "gpu_firewall")
    rules, found = decide(wanted, node)
    options = plan(rules, wanted, node.kernel, boot) if rules else None
    return {"plan": options, "problems": [describe(one) for one in found]}


def comparisons(
    name: str, hostvars: Mapping[str, Mapping[str, Any]], groups: Mapping[str, Iterable[str]], facts: Mapping[str, Any]
) -> list[Comparison]:
    """Return every comparison of a node's firewall; raise DocumentError for facts of the wrong shape."""
    state = str(hostvars[name].get("firewall_state") or "absent")
    if state != "present":
        recorded = bool((facts.get("gpu_node_state") or {}).get("firewall_recorded"))
        return compare_absent(recorded) if state == "absent" else []
    if not facts.get("gpu_firewall") or any(True for _one in problems(hostvars[name])):
        return compare_unmeasured()
    wanted: Request = with_watchers(request(name, hostvars, groups.get(GROUP, ())), name, hostvars, groups)
    node = parse(FirewallNode, facts["gpu_firewall"], "gpu_firewall")
    rules, _found = decide(wanted, node)
    return compare_rules(rules, wanted, node) if rules else compare_unmeasured()
