# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide what a node's firewall lets through: whose it is, on which interfaces, from whom, at which ports."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from ...documents.firewall import FirewallNode
from ...problems.problem import Problem
from .ports import UNPRIVILEGED, Ranges, union, within, without
from .request import Request

# The first release of firewalld with policies between a zone and the host.
POLICIES = (0, 9)


@dataclass(frozen=True)
class Rules:
    """peers may reach ports; only peers may open a connection to closed; what is in neither stays as it was."""

    owner: str
    interfaces: tuple[str, ...]
    addresses: tuple[str, ...]  # all those of the interfaces
    peers: tuple[str, ...]
    ports: Ranges
    closed: Ranges


def decide(wanted: Request, node: FirewallNode) -> tuple[Rules | None, list[Problem]]:
    """Return the rules, or why there can be none."""
    found = [*owner_problems(wanted, node), *interface_problems(wanted, node)]
    found += [Problem("firewall_unknown_peer", one) for one in wanted.unknown]
    if found:
        return None, found
    interfaces = training_interfaces(wanted, node)
    addresses = {str(ipaddress.ip_address(one)) for name in interfaces for one in node.interfaces[name]}
    ssh = union((port, port) for port in node.ssh_ports)
    return Rules(
        owner=owner(node) or "",
        interfaces=interfaces,
        addresses=tuple(sorted(addresses)),
        peers=wanted.peers,
        ports=without(within(wanted.reachable, UNPRIVILEGED), ssh),
        closed=without(UNPRIVILEGED, [*ssh, *wanted.open_ports]),
    ), []


def owner(node: FirewallNode) -> str | None:
    """Return whose the host's rules are: the one that is in charge, or without one nftables; None for two."""
    in_charge = [name for name, active in (("firewalld", node.firewalld.active), ("ufw", node.ufw.active)) if active]
    if len(in_charge) > 1:
        return None
    return in_charge[0] if in_charge else "nftables"


def owner_problems(wanted: Request, node: FirewallNode) -> Iterator[Problem]:
    """Yield the reasons why the host's rules cannot be added to."""
    found = owner(node)
    if found is None:
        yield Problem("firewall_two_owners", "firewalld", {"other": "ufw"})
        return
    if wanted.owner not in ("auto", found):
        yield Problem("firewall_other_owner", wanted.owner, {"found": found})
    if found == "firewalld":
        yield from _firewalld_problems(node)
    strangers = [one.label for one in node.nft.closed if one.tool == "iptables"]
    if found == "nftables" and strangers:
        yield Problem("firewall_unknown_owner", ", ".join(strangers))


def _firewalld_problems(node: FirewallNode) -> Iterator[Problem]:
    version = node.firewalld.version or "0"
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < POLICIES:
        yield Problem("firewall_old_firewalld", version, {"least": ".".join(map(str, POLICIES))})
    if node.firewalld.unsaved:
        yield Problem("firewall_unsaved", ", ".join(node.firewalld.unsaved))


def training_interfaces(wanted: Request, node: FirewallNode) -> tuple[str, ...]:
    """Return the interfaces that are named, or else those that have an address which training uses."""
    if wanted.interfaces:
        return tuple(sorted(set(wanted.interfaces)))
    mine = set(map(ipaddress.ip_address, wanted.addresses))
    found = (name for name, held in node.interfaces.items() if mine & set(map(ipaddress.ip_address, held)))
    return tuple(sorted(found))


def interface_problems(wanted: Request, node: FirewallNode) -> Iterator[Problem]:
    """Yield interfaces and addresses that the node does not have."""
    for name in wanted.interfaces:
        if name not in node.interfaces:
            yield Problem("firewall_no_interface", name, {"interfaces": sorted(node.interfaces)})
    held = {ipaddress.ip_address(one) for addresses in node.interfaces.values() for one in addresses}
    for address in wanted.addresses:
        if ipaddress.ip_address(address) not in held:
            yield Problem("firewall_foreign_address", address)
