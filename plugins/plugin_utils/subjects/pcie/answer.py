# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCIe as plain values: variables and facts in; what the role, the checks and the report need out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ....module_utils.machine import pci_config
from ....module_utils.settings import pcie_facts as pcie
from ....module_utils.settings.pcie_program import DECLARATION
from ...documents.comparison import Comparison
from ...documents.parsing import parse
from ...documents.pcie import PcieNode
from ...problems.problem import Problem
from ..subject import Decision, Node, Subject
from .compare import compare_pcie, compare_unmeasured, compare_unwanted
from .judge import judge, labels
from .request import DEFAULTS, Request, request
from .request import problems as request_problems
from .sentences import SENTENCES
from .text import sentence


def problems(variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of values that are not valid."""
    return request_problems(request(variables))


def decide_registers(node: Node) -> Decision:
    """Return the registers as options of module tuning; raise DocumentError for facts of the wrong shape."""
    wanted, measured = request(node.variables), _node(node.facts)
    found = list(request_problems(wanted))
    if wanted.clear_redirect and any(one.kind == "gpu" for one in measured.devices):
        found += [Problem(one["code"], "", one["detail"]) for one in pcie.refusals(node.facts["gpu_pcie"])]
    if found:
        return Decision(problems=tuple(found))
    values = _values(wanted, measured, node.facts)
    text = json.dumps({"values": values}, indent=1, sort_keys=True) + "\n"
    files = [{"path": DECLARATION, "content": text, "mode": "0644"}, *node.boot] if values else []
    return Decision({"files": files, "values": values}, applies=wanted.asks)


def comparisons(node: Node) -> list[Comparison]:
    """Return every comparison of what was asked for; raise DocumentError for facts of the wrong shape."""
    wanted = request(node.variables)
    if not wanted.asks:
        return compare_unwanted(node.has_record("pcie"))
    if not node.facts.get("gpu_pcie"):
        return compare_unmeasured()
    measured, gpu_node = _node(node.facts), node.facts.get("gpu_node") or {}
    return compare_pcie(wanted, measured, acs_bridges(measured, gpu_node), labels(measured, gpu_node))


def _values(wanted: Request, node: PcieNode, facts: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the registers with the bits that they get: bridges of pairs that use PCIe, and adapters."""
    values = [
        {"path": pcie.acs_register(address), "value": "0000"}
        for address in (acs_bridges(node, facts.get("gpu_node") or {}) if wanted.clear_redirect else ())
    ]
    bits = f"{pci_config.encoded(wanted.read_request):04x}" if wanted.read_request else ""
    nics = [one for one in node.devices if one.kind == "nic" and one.read_request is not None]
    return values + [{"path": pcie.read_request_register(one.address), "value": bits} for one in nics if bits]


def acs_bridges(node: PcieNode, gpu_node: Mapping[str, Any]) -> list[str]:
    """Return the bridges with ACS that traffic between the pairs passes, and no other one."""
    between = {address for pair in judge(node, gpu_node) for address in pair.bridges}
    return sorted(address for address in between if node.bridges[address].acs is not None)


def pairs(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the pairs for the report; none where PCIe was not measured."""
    found = judge(_node(facts), facts.get("gpu_node") or {})
    return [
        {"one": one.one, "other": one.other, "verdict": one.verdict, "reasons": [sentence(why) for why in one.reasons]}
        for one in found
    ]


def _node(facts: Mapping[str, Any]) -> PcieNode:
    return parse(PcieNode, facts.get("gpu_pcie") or {}, "gpu_pcie")


SUBJECT = Subject(
    name="pcie",
    defaults=DEFAULTS,
    problems=problems,
    compare=comparisons,
    sentences=SENTENCES,
    facts="allreduce.gpu.pcie_facts",
    applied_by="allreduce.gpu.tuning",
    options={"record": "pcie"},
    decide=decide_registers,
    refusal="PCIe of {host} stays as it is. ",
)
