# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address at which the other nodes reach a node: which one it is, and what makes it unusable."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..documents import values
from ..documents.door import Told, told
from ..documents.values import Unfit
from ..problems.problem import Problem

# The variables that tell a node's address.
READS = ("gpu_cluster_address", "ansible_facts.default_ipv4.address")


def cluster_address(variables: Mapping[str, Any]) -> str | None:
    """Return gpu_cluster_address of a node, else the measured address of its default route, else None.

    variables: those of the host, with its facts; an IP address is returned in its canonical form. What a node measured that no
    other host could reach it at does not count.
    """
    declared = variables.get("gpu_cluster_address")
    if declared:
        return _canonical(str(declared))
    facts = variables.get("ansible_facts")
    route = facts.get("default_ipv4") if isinstance(facts, Mapping) else None
    measured = route.get("address") if isinstance(route, Mapping) else None
    return str(measured) if measured and is_address(measured) else None


def is_address(value: object) -> bool:
    """Return True if a value is the address of one host."""
    try:
        values.address(value)
    except Unfit:
        return False
    return True


def address_problems(addresses: Mapping[str, str | None]) -> list[Problem]:
    """Return the problems that keep nodes from reaching each other at these addresses (by node): missing, invalid, of loopback, shared."""
    missing = [node for node, address in addresses.items() if not address]
    problems = [Problem("missing_address", "gpu_cluster_address", {"nodes": missing})] if missing else []
    alone = len(addresses) == 1
    problems += [found for node, address in addresses.items() if address and (found := _problem(node, address, alone))]
    shared = [(address, nodes) for address, nodes in _owners(addresses).items() if len(nodes) > 1]
    return problems + [Problem("shared_address", address, {"nodes": nodes}) for address, nodes in shared]


def _problem(node: str, address: str, alone: bool) -> Problem | None:
    """Return the reason why other nodes cannot reach a node at its address; one that is alone may have that of its loopback interface."""
    if is_address(address):
        return None
    if not _is_loopback(address):
        return Problem("invalid_address", node, {"address": address})
    return None if alone else Problem("loopback_address", node, {"address": address})


def _is_loopback(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def _owners(addresses: Mapping[str, str | None]) -> dict[str, list[str]]:
    owners: dict[str, list[str]] = {}
    for node, address in addresses.items():
        if address and is_address(address):
            owners.setdefault(_canonical(address), []).append(node)
    return owners


def taken_addresses(known: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """Yield a problem for each node that measured the address of another one, as far as the inventory tells whose it is.

    known: the variables of the nodes, with their facts and ansible_host. What gpu_cluster_address or ansible_host says is sure.
    """
    for address, nodes in _owners({node: cluster_address(variables) for node, variables in known.items()}).items():
        sure = [node for node in nodes if address in _declared(node, known[node])]
        if len(nodes) > 1 and len(sure) == 1:
            for node in nodes:
                if node not in sure:
                    yield Problem("address_of_another", node, {"address": address, "owner": sure[0]})


def neighbours(hostvars: Mapping[str, Mapping[str, Any]], names: Iterable[str], paths: Iterable[str]) -> Told:
    """Return the values of these nodes, without those that say the address of another one; see documents/door.py."""
    said = told(hostvars, names, [*paths, "ansible_host"])
    problems = [*taken_addresses(said.values)]
    gone = {problem.subject for problem in problems}
    return Told({name: one for name, one in said.values.items() if name not in gone}, (*said.problems, *problems))


def _declared(node: str, variables: Mapping[str, Any]) -> list[str]:
    given = (variables.get("gpu_cluster_address"), variables.get("ansible_host"), node)
    return [_canonical(str(one)) for one in given if one]


def _canonical(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text
