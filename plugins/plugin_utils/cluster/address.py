# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address at which the other nodes reach a node: which one it is, and what makes it unusable."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from ..problems.problem import Problem

# The variables that tell a node's address.
READS = ("gpu_cluster_address", "ansible_facts.default_ipv4.address")


def cluster_address(variables: Mapping[str, Any]) -> str | None:
    """Return gpu_cluster_address of a node, else the measured address of its default route, else None.

    variables: those of the host, with its facts; an IP address is returned in its canonical form
    """
    facts = variables.get("ansible_facts") or {}
    address = variables.get("gpu_cluster_address") or (facts.get("default_ipv4") or {}).get("address")
    return _canonical(str(address)) if address else None


def address_problems(addresses: Mapping[str, str | None]) -> list[Problem]:
    """Return what keeps nodes from reaching each other at these addresses (by node): missing, invalid, shared."""
    missing = [node for node, address in addresses.items() if not address]
    problems = [Problem("missing_address", "gpu_cluster_address", {"nodes": missing})] if missing else []
    owners: dict[str, list[str]] = {}
    for node, address in addresses.items():
        if address and not _is_ip(address):
            problems.append(Problem("invalid_address", node, {"address": address}))
        elif address:
            owners.setdefault(_canonical(address), []).append(node)
    shared = [(address, nodes) for address, nodes in owners.items() if len(nodes) > 1]
    return problems + [Problem("shared_address", address, {"nodes": nodes}) for address, nodes in shared]


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _canonical(text: str) -> str:
    return str(ipaddress.ip_address(text)) if _is_ip(text) else text
