# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find host names and addresses that keep measured nodes from forming a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..problems.problem import Problem
from .address import address_problems, cluster_address
from .names import is_own_name


def cluster_problems(hosts: Mapping[str, Mapping[str, Any]]) -> list[Problem]:
    """Return what is wrong with the names and addresses of the nodes that were measured; of the others nothing is known.

    hosts: the variables of every node, with its facts. A node alone needs neither a name nor an address that others know.
    """
    measured = {
        node: variables for node, variables in hosts.items() if "default_ipv4" in (variables.get("ansible_facts") or {})
    }
    if len(measured) < 2:
        return []
    return [
        *_name_problems({node: variables["ansible_facts"].get("nodename") for node, variables in measured.items()}),
        *address_problems({node: cluster_address(variables) for node, variables in measured.items()}),
    ]


def _name_problems(names: Mapping[str, str | None]) -> list[Problem]:
    owners: dict[str, list[str]] = {}
    for node, name in names.items():
        if name is not None:
            owners.setdefault(name.lower(), []).append(node)
    unnamed = [
        Problem("no_host_name", name, {"nodes": nodes}) for name, nodes in owners.items() if not is_own_name(name)
    ]
    shared = [
        Problem("shared_host_name", name, {"nodes": nodes})
        for name, nodes in owners.items()
        if is_own_name(name) and len(nodes) > 1
    ]
    return unnamed + shared
