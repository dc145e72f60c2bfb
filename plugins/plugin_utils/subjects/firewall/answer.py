# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firewall as plain values: variables and facts in, what modules and checks need out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...documents.comparison import Comparison
from ...documents.firewall import FirewallNode
from ...documents.parsing import parse
from ...problems.problem import Problem
from ...problems.text import describe_all
from ..subject import Decision, Node, Subject
from .compare import compare_absent, compare_rules, compare_unmeasured
from .decide import decide
from .plan import plan
from .request import DEFAULTS, GROUP, READS_OF_OTHERS, Request, given, problems, request, with_services
from .sentences import SENTENCES


def decide_rules(node: Node) -> Decision:
    """Return the rules as options of module firewall; raise DocumentError for facts of the wrong shape."""
    known = node.known
    members = [one for one in dict.fromkeys([node.name, *node.groups.get(GROUP, ())]) if one in known]
    found = [one for name in members for one in problems(known[name])]
    if found:
        return Decision(problems=tuple(found))
    wanted, measured = _request(node), parse(FirewallNode, node.facts.get("gpu_firewall") or {}, "gpu_firewall")
    rules, misfits = decide(wanted, measured)
    if misfits or not rules:
        return Decision(problems=tuple(misfits))
    # A minimal system may come without the tools that load the rules.
    lacks = rules.owner != "firewalld" and not measured.nft.installed
    return Decision(plan(rules, wanted, measured.kernel, node.boot), packages=("nftables",) if lacks else ())


def comparisons(node: Node) -> list[Comparison]:
    """Return every comparison of a node's firewall; raise DocumentError for facts of the wrong shape."""
    state = str(node.variables.get("firewall_state") or "absent")
    if state != "present":
        return compare_absent(node.has_record("firewall")) if state == "absent" else []
    if not node.facts.get("gpu_firewall") or any(True for _one in problems(node.variables)):
        return compare_unmeasured()
    wanted, measured = _request(node), parse(FirewallNode, node.facts["gpu_firewall"], "gpu_firewall")
    rules, found = decide(wanted, measured)
    return compare_rules(rules, wanted, measured) if rules else compare_unmeasured(describe_all(found, SENTENCES))


def _request(node: Node) -> Request:
    wanted = request(node.name, node.known, node.groups.get(GROUP, ()))
    return with_services(wanted, node.name, node.known, node.groups)


def misfits(node: Node) -> Iterator[Problem]:
    """Yield interfaces that a node lacks; Ansible's facts write "_" for what is not a letter or digit of a name."""
    held = node.facts.get("interfaces") or []
    for one in given(node.variables)["firewall_interfaces"] if held else ():
        if not {str(one), re.sub(r"\W", "_", str(one))} & set(held):
            yield Problem("firewall_lacks_interface", str(one), {"nodes": [node.name], "interfaces": sorted(held)})


SUBJECT = Subject(
    name="firewall",
    defaults=DEFAULTS,
    problems=problems,
    misfits=misfits,
    compare=comparisons,
    # Who watches reaches the exporters of the nodes, and who schedules their slurmd.
    members=("gpu_nodes", "controllers", "login_nodes"),
    reads=("monitoring_state", "slurm_state"),
    reads_of_others=READS_OF_OTHERS,
    sentences=SENTENCES,
    facts="allreduce.gpu.firewall_facts",
    applied_by="allreduce.gpu.firewall",
    decide=decide_rules,
    refusal="The firewall of {host} stays as it is: ",
)
