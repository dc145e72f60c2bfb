# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a user's request to role firewall, and refuse invalid values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ...cluster.address import READS, cluster_address, is_address
from ...cluster.networks import is_network, outermost, text
from ...problems.problem import Problem
from ..monitoring.programs import PORTS
from ..monitoring.request import CONTROLLERS
from ..options import as_list
from ..slurm.programs import NODE_PORT, SRUN_PORTS
from ..slurm.request import LOGIN_NODES
from .ports import UNPRIVILEGED, Ranges, parse_range, union

# The defaults of the role's variables (a test compares).
DEFAULTS: dict[str, Any] = {
    "firewall_state": "absent",
    "firewall_owner": "auto",
    "firewall_interfaces": [],
    "firewall_addresses": [],
    "firewall_extra_sources": [],
    "firewall_open_ports": [],
    "firewall_strict": False,
    "firewall_port_range": "50000-50999",
    "firewall_ports": [29400, 29500],
    "firewall_rollback_seconds": 180,
}
GROUP = "gpu_nodes"
# What is read of the other nodes, and of the controllers, which ask the exporters and start jobs: addresses, and values that may be wrong.
READS_OF_OTHERS = (
    *READS,
    "ansible_host",
    "firewall_addresses",
    "firewall_extra_sources",
    "firewall_interfaces",
    "firewall_open_ports",
    "firewall_port_range",
    "firewall_ports",
)
# Fewer ephemeral ports than this, and connections of a node that has nothing to do with training run out of them.
LEAST_RANGE = 256


@dataclass(frozen=True)
class Request:
    """The variables of a node. peers: addresses of all nodes and what else may open connections, without repetition."""

    owner: str = "auto"
    interfaces: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()  # of this node
    peers: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()  # nodes without a known address
    open_ports: Ranges = ()
    strict: bool = False
    port_range: tuple[int, int] = (50000, 50999)
    ports: Ranges = ()

    @property
    def reachable(self) -> Ranges:
        """Return the ports that peers may reach."""
        return union([self.port_range, *self.ports]) if self.strict else UNPRIVILEGED


def given(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of the role, those that are not set with its defaults."""
    found = {name: variables.get(name, default) for name, default in DEFAULTS.items()}
    lists = [name for name, default in DEFAULTS.items() if isinstance(default, list)]
    return {**found, **{name: as_list(found[name]) for name in lists}}


def request(name: str, known: Mapping[str, Mapping[str, Any]], nodes: Iterable[str]) -> Request:
    """Return the request for node NAME. For variables without problems.

    known: the variables of the nodes, without those that are left out; nodes: the group of all
    """
    mine = given(known[name])
    addresses = {node: _addresses(known[node]) for node in [*nodes, name] if node in known}
    extra = [str(one) for one in mine["firewall_extra_sources"]]
    everyone = [one for found in addresses.values() for one in found] + extra
    return Request(
        owner=str(mine["firewall_owner"]),
        interfaces=tuple(map(str, mine["firewall_interfaces"])),
        addresses=tuple(addresses[name]),
        peers=distinct(everyone),
        unknown=tuple(node for node, found in addresses.items() if not found),
        open_ports=_ranges(mine["firewall_open_ports"]),
        strict=boolean(mine["firewall_strict"], strict=False),
        port_range=parse_range(mine["firewall_port_range"]) or (0, 0),
        ports=_ranges(mine["firewall_ports"]),
    )


def with_services(
    wanted: Request, name: str, known: Mapping[str, Mapping[str, Any]], groups: Mapping[str, Iterable[str]]
) -> Request:
    """Return the request with the controllers, where roles monitoring and slurm have them reach a node, and with the ports of both.

    Users of Slurm start jobs on login nodes, too.

    By what the inventory says alone: these hosts are measured after the nodes, if at all.
    """
    variables = known[name]
    watched, scheduled = (str(variables.get(f"{one}_state")) == "present" for one in ("monitoring", "slurm"))
    if not (watched or scheduled):
        return wanted
    askers = [*groups.get(CONTROLLERS, ()), *(groups.get(LOGIN_NODES, ()) if scheduled else ())]
    others = [one for one in askers if one not in groups.get(GROUP, ())]
    addresses = {one: _inventory_address(one, known[one]) for one in others if one in known}
    ports = [(PORTS["node"],) * 2, (PORTS["dcgm"],) * 2] if watched else []
    ports += [(NODE_PORT,) * 2, SRUN_PORTS] if scheduled else []
    return replace(
        wanted,
        peers=distinct([*wanted.peers, *(address for address in addresses.values() if address)]),
        unknown=(*wanted.unknown, *(one for one, address in addresses.items() if not address)),
        ports=union([*wanted.ports, *ports]),
    )


def _inventory_address(name: str, variables: Mapping[str, Any]) -> str | None:
    found = (variables.get("gpu_cluster_address"), variables.get("ansible_host"), name)
    return next((str(one) for one in found if one and is_address(str(one))), None)


def distinct(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return addresses and networks in order, in the kernel's spelling, without those that another one contains."""
    return tuple(text(one) for one in sorted(outermost(addresses), key=lambda one: (one.version, one.prefixlen)))


def problems(variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of the values of a node's variables; no fact of the node is needed for it."""
    mine = given(variables)
    for name, networks in (("firewall_addresses", False), ("firewall_extra_sources", True)):
        for one in mine[name]:
            if not (is_network(one) if networks else is_address(str(one))):
                yield Problem("firewall_no_address", name, {"value": str(one), "kind": _KINDS[networks]})
    for name in ("firewall_open_ports", "firewall_ports"):
        for one in mine[name]:
            if parse_range(one) is None:
                yield Problem("firewall_no_port", name, {"value": str(one)})
    found = parse_range(mine["firewall_port_range"])
    if found is None or found[0] < 1024 or found[1] - found[0] + 1 < LEAST_RANGE:
        yield Problem("firewall_port_range", str(mine["firewall_port_range"]), {"least": LEAST_RANGE})
    for one in mine["firewall_interfaces"]:
        if not _is_interface(str(one)):
            yield Problem("firewall_no_interface_name", str(one))


_KINDS = {False: "an IP address", True: "an IP address or a network such as 10.0.0.0/24"}


def _is_interface(name: str) -> bool:
    """Return True if the kernel takes the name; quotes would end a rule's text."""
    return 0 < len(name) < 16 and name not in (".", "..") and not set(name) & set('/:"\\ \t\n*')


def _addresses(variables: Mapping[str, Any]) -> list[str]:
    first = cluster_address(variables)
    more = [str(one) for one in given(variables)["firewall_addresses"]]
    return [one for one in [first, *more] if one] if first else []


def _ranges(values: Iterable[object]) -> Ranges:
    return union(one for one in map(parse_range, values) if one)
