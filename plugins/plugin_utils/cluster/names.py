# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names that a node may have: it names itself, and no other node. Pure.

Inventories name nodes by aliases, by addresses or by parts of their names, so what a node calls itself is mostly something else: gpu-1 in
the inventory, gpu-1.internal.example.org on Enterprise Linux, ip-10-0-0-1 in a cloud. But every other node then finds that name at the
node's address: a name of another host would bring that host's connections there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..documents import values
from ..documents.door import unfit
from ..documents.values import Unfit
from ..problems.problem import Problem

READS = (
    "ansible_host",
    "cluster_ssh_domains",
    "gpu_cluster_address",
    "ansible_facts.nodename",
    "ansible_facts.hostname",
)
# What a host calls itself that has not been named, and names that distributions give to interfaces and networks of every host.
_NO_NAME = (
    "", "(none)", "localhost", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback", "ip6-localnet", "ip6-mcastprefix",
    "ip6-allnodes", "ip6-allrouters", "ip6-allhosts", "broadcasthost", "_gateway", "_outbound",
)  # fmt: skip


def is_own_name(name: str) -> bool:
    """Return True if a host name is of one host, and not of every host's loopback interface."""
    return name.split(".")[0].lower() not in _NO_NAME


def node_name(variables: Mapping[str, Any]) -> str | None:
    """Return the name of a node, as it says it."""
    facts = variables.get("ansible_facts") or {}
    name = facts.get("nodename") or facts.get("hostname")
    return name if isinstance(name, str) else None


@dataclass(frozen=True)
class Names:
    """Names in the inventory: how many hosts have each, whole or without its domain, and the domains that nodes may be in."""

    hosts: Counter[str]
    domains: frozenset[str]

    @classmethod
    def of(cls, known: Mapping[str, Mapping[str, Any]]) -> Names:
        """Return those of these hosts. known: their variables, of which ansible_host and cluster_ssh_domains count."""
        declared = [_declared(host, variables) for host, variables in known.items()]
        given = [name for names in declared for name in names]
        listed = [one for variables in known.values() for one in _listed(variables.get("cluster_ssh_domains"))]
        domains = {name.partition(".")[2] for name in given} | {one.strip(".").lower() for one in listed}
        return cls(Counter(name for names in declared for name in _with_short(names)), frozenset(domains - {""}))

    def problem(self, node: str, variables: Mapping[str, Any]) -> Problem | None:
        """Return the reason why a node cannot have the name that it gives itself."""
        name, own = node_name(variables), _declared(node, variables)
        if name is None or not is_own_name(name) or name.lower() in (node.lower(), *own):
            return None
        try:
            said = values.host_name(name).lower()
        except Unfit as error:
            return unfit(node, "ansible_facts.nodename", name, error.expected)
        short, _dot, domain = said.partition(".")
        mine = _with_short(own)
        belongs = domain == "" or domain in self.domains
        if self._is_of_another(said, mine) or (belongs and short not in mine and self._is_of_another(short, mine)):
            return Problem("name_of_another", node, {"name": said})
        if belongs or short in mine or short in _names_of_addresses(node, variables):
            return None
        return Problem("foreign_domain", node, {"name": said, "domain": domain})

    def _is_of_another(self, name: str, mine: set[str]) -> bool:
        return self.hosts[name] > (name in mine)


def _with_short(names: Iterable[str]) -> set[str]:
    """Return names with and without their domains."""
    return {one for name in names for one in (name, name.partition(".")[0])}


def _declared(host: str, variables: Mapping[str, Any]) -> list[str]:
    """Return the names that the inventory has for a host: its own, and the one by which Ansible reaches it."""
    given = (host, variables.get("ansible_host"))
    return [one.lower() for one in given if isinstance(one, str) and not values.is_ip(one)]


def _names_of_addresses(node: str, variables: Mapping[str, Any]) -> list[str]:
    """Return the names that clouds give a host with an address of this one."""
    measured = ((variables.get("ansible_facts") or {}).get("default_ipv4") or {}).get("address")
    known = (measured, variables.get("gpu_cluster_address"), variables.get("ansible_host"), node)
    return [f"ip-{one.replace('.', '-')}" for one in known if isinstance(one, str) and values.is_ip(one)]


def _listed(value: Any) -> Iterable[str]:
    return value.split(",") if isinstance(value, str) else [str(one) for one in value or []]
