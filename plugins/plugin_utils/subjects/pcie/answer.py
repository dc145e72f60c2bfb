# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCIe as plain values: variables and facts in; what the role, the checks and the report need out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ....module_utils.machine import pci_config
from ....module_utils.settings import pcie_facts as pcie
from ....module_utils.settings.pcie_program import DECLARATION
from ....module_utils.settings.tuning_describe import describe as describe_refusal
from ...documents.comparison import Comparison
from ...documents.parsing import parse
from ...documents.pcie import PcieNode
from ...problems.text import describe
from .compare import compare_pcie, compare_unmeasured, compare_unwanted
from .judge import judge, labels
from .request import DEFAULTS, Request, problems, request
from .text import sentence

VARIABLES = tuple(DEFAULTS)


def answer(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return {plan: {files, values, boot} for module tuning, problems: sentences}.

    Raise DocumentError for facts of the wrong shape.
    """
    wanted, node = request(variables), _node(facts)
    found = [describe(one) for one in problems(wanted)]
    if wanted.clear_redirect and any(one.kind == "gpu" for one in node.devices):
        found += [describe_refusal(one) for one in pcie.refusals(facts["gpu_pcie"])]
    values = [] if found else _values(wanted, node, facts)
    text = json.dumps({"values": values}, indent=1, sort_keys=True) + "\n"
    files = [{"path": DECLARATION, "content": text, "mode": "0644"}] if values else []
    return {"plan": {"files": files, "values": values, "boot": bool(values)}, "problems": found}


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


def comparisons(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> list[Comparison]:
    """Return every comparison of what was asked for; raise DocumentError for facts of the wrong shape."""
    wanted = request(variables)
    if not wanted.asks:
        return compare_unwanted(bool((facts.get("gpu_node_state") or {}).get("pcie_recorded")))
    if not facts.get("gpu_pcie"):
        return compare_unmeasured()
    node, gpu_node = _node(facts), facts.get("gpu_node") or {}
    return compare_pcie(wanted, node, acs_bridges(node, gpu_node), labels(node, gpu_node))


def pairs(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the pairs for the report; none where PCIe was not measured."""
    found = judge(_node(facts), facts.get("gpu_node") or {})
    return [
        {"one": one.one, "other": one.other, "verdict": one.verdict, "reasons": [sentence(why) for why in one.reasons]}
        for one in found
    ]


def _node(facts: Mapping[str, Any]) -> PcieNode:
    return parse(PcieNode, facts.get("gpu_pcie") or {}, "gpu_pcie")
