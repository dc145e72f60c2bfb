# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Follow the traffic class that NCCL uses through a port: DSCP, priority, flow control, buffer, share. Where does it break?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...documents.rdma import Adapter, Bridging, RdmaNode
from ...problems.problem import Problem

# NCCL's own where neither a variable nor a communicator says another (src/transport/net_ib/connect.cc).
NCCL_DEFAULT = 0


@dataclass(frozen=True)
class Chain:
    """The way of NCCL's traffic through a port; broken: where it ends in a class that loses packets."""

    adapter: str
    interface: str
    way: Problem
    is_whole: bool


def chains(node: RdmaNode, declared: str = "") -> list[Chain]:
    """Return the chain of each Ethernet port that is not a virtual function's. declared: what launches set in NCCL_IB_TC."""
    asked = declared or node.traffic_class.nccl
    return [
        chain(adapter, interface, node.dcb.get(interface), asked, node.traffic_class.forced.get(adapter.name))
        for adapter in node.adapters
        if not adapter.virtual
        for port in adapter.ports
        if port.link_layer == "Ethernet"
        for interface in port.netdevs
    ]


def chain(
    adapter: Adapter, interface: str, port: Bridging | None, asked: str | None, forced: int | None = None
) -> Chain:
    """Return one chain. asked: NCCL_IB_TC, None where nothing sets it; forced: by the driver, whatever NCCL asks for."""
    number = traffic_class(asked) if forced is None else forced
    if number is None:
        way = Problem("chain_no_class", interface, {"adapter": adapter.name, "value": asked})
        return Chain(adapter.name, interface, way, False)
    origin = "forced" if forced is not None else "default" if asked is None else "asked"
    code, detail = _follow(port, number >> 2)
    told: dict[str, Any] = {"adapter": adapter.name, "class": number, "dscp": number >> 2, "origin": origin, **detail}
    return Chain(adapter.name, interface, Problem(f"chain_{code}", interface, told), code == "whole")


def traffic_class(asked: str | None) -> int | None:
    """Return NCCL's number, as strtol reads it; None for anything else."""
    if asked is None:
        return NCCL_DEFAULT
    try:
        number = int(asked, 0)
    except ValueError:
        return None
    return number if 0 <= number <= 255 else None


def _follow(port: Bridging | None, dscp: int) -> tuple[str, dict[str, Any]]:
    """Return (code, detail) of the first link that is broken, or of the whole way."""
    if port is None or port.apps is None or port.pfc is None:
        return "unknown", {}
    if not port.apps:
        return "untrusted", {"priority": port.default or 0}
    if str(dscp) not in port.apps:
        return "unmapped", {"priority": port.default or 0}
    priority = port.apps[str(dscp)]
    detail: dict[str, Any] = {"priority": priority, "pfc": list(port.pfc)}
    if priority not in port.pfc:
        return "lossy", detail
    return _buffer(port, priority, detail) or _share(port, priority, detail)


def _buffer(port: Bridging, priority: int, detail: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return a break where the priority has no buffer, or one that priorities without flow control may fill."""
    if port.buffers is None:
        return None  # a driver that does not show them
    number = port.buffers.of[priority]
    if not port.buffers.sizes[number]:
        return "no_buffer", {**detail, "buffer": number}
    others = [one for one, buffer in enumerate(port.buffers.of) if buffer == number and one not in (port.pfc or ())]
    return ("shared_buffer", {**detail, "buffer": number, "others": others}) if others else None


def _share(port: Bridging, priority: int, detail: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a break where the class of the priority has no bandwidth, else the whole way with its class."""
    if port.ets is None:
        return "whole", {**detail, "share": "of its own"}
    number = port.ets.classes[priority]
    scheduled = port.ets.tsa[number] == "ets"
    if scheduled and not port.ets.bandwidth[number]:
        return "no_share", {**detail, "number": number}
    share = f"{number} with {port.ets.bandwidth[number]} %" if scheduled else f"{number} ({port.ets.tsa[number]})"
    return "whole", {**detail, "share": share}
