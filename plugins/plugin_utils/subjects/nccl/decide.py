# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide what /etc/nccl.conf says on a node: a line only where what was measured makes NCCL's own choice wrong or ambiguous."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...documents.nccl import NcclNode
from ...topology.nics import hca_choice
from .request import Request

CONF = "/etc/nccl.conf"
HEAD = "# Written by role allreduce.gpu.nccl; nccl_conf_state: absent puts back what was there before."
NOTHING = "# Nothing is set: NCCL's own choices are right for what was measured of this node."
DECLARED = "Declared in the inventory"
# In this order NCCL looks for interfaces: src/misc/socket.cc, ncclFindInterfaces.
FIRST = ("ib",)
LAST = ("docker", "lo", "virbr")


@dataclass(frozen=True)
class Line:
    """A variable with its value, and why it is set."""

    name: str
    value: str
    reason: str


def decide(wanted: Request, node: NcclNode, gpu_node: Mapping[str, Any], address: str | None) -> tuple[Line, ...]:
    """Return the lines of the file, by name; what the user declares stands for what was measured."""
    found = {one.name: one for one in _measured(node, gpu_node, address)}
    for name, value in wanted.variables.items():
        found.pop(name, None)
        if value is not None:
            found[name] = Line(name, value, DECLARED)
    return tuple(found[name] for name in sorted(found))


def _measured(node: NcclNode, gpu_node: Mapping[str, Any], address: str | None) -> Iterator[Line]:
    """Yield the lines that a measurement gives a reason for; nothing on a node without GPUs, or with one that no one has examined.

    The index of an adapter's GID is not one of them: tables change, and NCCL 2.21 and later looks for it by itself.
    """
    if not gpu_node.get("gpus"):
        return
    adapters, why = hca_choice(gpu_node)
    if adapters:
        yield Line("NCCL_IB_HCA", adapters, f"Measured: {why}")
    own, others = interface_choice(node, address)
    if own:
        more = f"has the cluster address {address}, and NCCL would also take {', '.join(others)}"
        yield Line("NCCL_SOCKET_IFNAME", f"={own}", f"Measured: {own} {more}")


def interface_choice(node: NcclNode, address: str | None) -> tuple[str, list[str]]:
    """Return (the interface with the cluster address, the others that NCCL would take); empty where nothing is ambiguous."""
    names = list(dict.fromkeys(one.name for one in node.interfaces))
    first = [name for name in names if name.startswith(FIRST)]
    candidates = first or [name for name in names if not name.startswith(LAST)]
    own = next((one.name for one in node.interfaces if one.name in candidates and _is_in(address, one.subnet)), "")
    others = [name for name in candidates if name != own]
    return (own, others) if own and others else ("", [])


def _is_in(address: str | None, subnet: str) -> bool:
    try:
        return ipaddress.ip_address(address or "") in ipaddress.ip_network(subnet, strict=False)
    except ValueError:
        return False


def content(lines: tuple[Line, ...]) -> str:
    """Return the text of the file. A reason has a line of its own: NCCL takes what follows a value for a part of it."""
    said = [part for one in lines for part in (f"# {one.reason}.", f"{one.name}={one.value}")]
    return "\n".join([HEAD, *(said or [NOTHING]), ""])


def files(lines: tuple[Line, ...], node: NcclNode) -> list[dict[str, str]]:
    """Return the file for module tuning; none where there is nothing to say and no other file to replace."""
    if not lines and not node.original:
        return []
    return [{"path": CONF, "content": content(lines), "mode": "0644"}]
