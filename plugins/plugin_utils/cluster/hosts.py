# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find host names and addresses that keep measured nodes from forming a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..documents.door import fitting
from ..problems.problem import Problem
from .address import READS as ADDRESS
from .address import address_problems, cluster_address, taken_addresses
from .names import READS as NAMES
from .names import Names, is_own_name

READS = (*ADDRESS, *NAMES)


def cluster_problems(hosts: Mapping[str, Mapping[str, Any]]) -> list[Problem]:
    """Return the problems of the names and addresses of the nodes that were measured; of the others nothing is known.

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


def misplaced(
    hosts: Mapping[str, Mapping[str, Any]], inventory: Iterable[str] = ()
) -> tuple[dict[str, Mapping[str, Any]], list[Problem]]:
    """Return the hosts whose names and addresses are their own, and the problems of the others, which concern them alone.

    hosts: the variables of every node, with its facts; inventory: the names of all hosts
    """
    fit, problems = fitting(hosts, READS)
    names = Names.of({**dict.fromkeys(inventory, {}), **fit})
    problems += [problem for node, variables in fit.items() if (problem := names.problem(node, variables))]
    problems += taken_addresses(fit)
    gone = {problem.subject for problem in problems}
    return {node: variables for node, variables in fit.items() if node not in gone}, problems


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
