# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is asked and what a node has to the options of module rdma. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...documents.rdma import RdmaNode
from ...problems.problem import Problem
from .gpudirect import version_of
from .request import Request, Roce

HEAD = "# Written by role allreduce.gpu.rdma; rdma_state: absent puts back what was there before."
DECLARATION = "/etc/allreduce/rdma.json"
NAMES = "/etc/udev/rules.d/60-rdma-persistent-naming.rules"  # the name of rdma-core's own, which it takes the place of
LOADED = "/etc/modules-load.d/allreduce-peermem.conf"
ORDER = "/etc/modprobe.d/allreduce-peermem.conf"
MODULE = "nvidia-peermem"
SERVICE = "allreduce-rdma"
UNITS = "/etc/systemd/system"
# Drivers bring the module from this branch on (NVIDIA, "GPUDirect RDMA" of GPU Operator 1.8).
FIRST_WITH_MODULE = (470,)


@dataclass(frozen=True)
class Driver:
    """The driver that is planned (open, proprietary or empty) with its branch, where it is known, and whether any is loaded."""

    planned: str = ""
    is_loaded: bool = False
    branch: str = ""

    @property
    def has_module(self) -> bool:
        """Return True if the planned driver may bring the module."""
        return self.planned == "proprietary" and (not self.branch or version_of(self.branch) >= FIRST_WITH_MODULE)


def fabric_interfaces(wanted: Request, node: RdmaNode) -> list[str]:
    """Return the interfaces that the fabric's declaration is for."""
    if wanted.roce is None:
        return []
    return list(wanted.interfaces) or ethernet(node)


def ethernet(node: RdmaNode) -> list[str]:
    """Return the interfaces of Ethernet ports of adapters that are not virtual functions."""
    ports = [port for one in node.adapters if not one.virtual for port in one.ports if port.link_layer == "Ethernet"]
    return sorted({name for port in ports for name in port.netdevs})


def problems(wanted: Request, node: RdmaNode) -> Iterator[Problem]:
    """Yield the problems of the request on this node; nothing on one without adapters, which is left alone."""
    if not node.adapters:
        return
    for variable, names, there in (
        ("rdma_interfaces", wanted.interfaces, ethernet(node)),
        ("rdma_ipoib", tuple(wanted.ipoib), sorted(node.ipoib)),
    ):
        for name in names:
            if name not in there:
                yield Problem("rdma_lacks_interface", name, {"variable": variable, "interfaces": there or ["none"]})
    interfaces = fabric_interfaces(wanted, node)
    if interfaces and not node.dcb_program:
        yield Problem("rdma_no_program", ", ".join(interfaces))
    for name in interfaces:
        owner = _owner(node, name)
        if owner:
            yield Problem("rdma_foreign_owner", name, {"owner": owner})


def _owner(node: RdmaNode, interface: str) -> str | None:
    if node.dcb_agent:
        return "lldpad"
    port = node.dcb.get(interface)
    return "the adapter's firmware" if port and port.dcbx is not None and "host" not in port.dcbx else None


def wants_peermem(wanted: Request, node: RdmaNode, driver: Driver) -> bool:
    """Return True if peer memory is the way: open kernel modules need none, and not every RDMA core takes clients."""
    offered = node.gpudirect is not None and node.gpudirect.peermem.offered
    return wanted.peermem == "auto" and driver.has_module and bool(offered)


def plan(wanted: Request, node: RdmaNode, driver: Driver) -> dict[str, Any]:
    """Return the options of module rdma, and ``units``: whether a unit of ours has to apply something to an interface.

    A node without adapters gets nothing, so that what it had is put back.
    """
    if not node.adapters:
        return {"files": [], "values": [], "modules": [], "ports": [], "units": False}
    interfaces, peermem = declared(wanted, node), wants_peermem(wanted, node, driver)
    return {
        "files": [*_names(wanted), *(_peermem() if peermem else ()), *_links(interfaces)],
        "values": [one for parts in interfaces.values() for one in parts["values"]],
        "modules": [MODULE] if peermem and driver.is_loaded else [],
        "ports": [one for parts in interfaces.values() for one in parts["ports"]],
        "units": bool(interfaces),
    }


def declared(wanted: Request, node: RdmaNode) -> dict[str, dict[str, list[Any]]]:
    """Return {interface: {ports, values}} of everything that its driver forgets."""
    found: dict[str, dict[str, list[Any]]] = {}
    roce = wanted.roce
    if roce is not None:
        for name in fabric_interfaces(wanted, node):
            found[name] = {"ports": [port(name, roce)], "values": _cnp(name, roce, node)}
    for name, one in wanted.ipoib.items():
        values = [
            {"path": f"/sys/class/net/{name}/{key}", "value": str(one[key])} for key in ("mode", "mtu") if key in one
        ]
        found[name] = {"ports": [], "values": values}
    return found


def port(interface: str, roce: Roce) -> dict[str, Any]:
    """Return one port as module rdma has it."""
    apps = {str(roce.dscp): roce.priority}
    if roce.cnp_dscp is not None and roce.cnp_priority is not None:
        apps[str(roce.cnp_dscp)] = roce.cnp_priority
    return {"interface": interface, "apps": apps, "pfc": list(roce.pfc), "ets": ets(roce.ets) if roce.ets else None}


def ets(shares: dict[int, int | str]) -> dict[str, list[Any]]:
    """Return each named priority in a class of its own number, all others in that of priority 0."""
    return {
        "tsa": ["strict" if shares.get(one, "strict") == "strict" else "ets" for one in range(8)],
        "bandwidth": [int(shares[one]) if shares.get(one, "strict") != "strict" else 0 for one in range(8)],
        "classes": [one if one in shares else 0 for one in range(8)],
    }


def _cnp(interface: str, roce: Roce, node: RdmaNode) -> list[dict[str, str]]:
    """Return values of congestion notifications in both places where drivers have them; the node takes what it has.

    NVIDIA's drivers show them below the interface, the kernel's own mlx5 below its debugfs (drivers/infiniband/hw/mlx5/cong.c).
    """
    address = next((one.pci_bus_id for one in node.adapters for port in one.ports if interface in port.netdevs), None)
    values = []
    for name, key, value in (("cnp_dscp", "dscp", roce.cnp_dscp), ("cnp_802p_prio", "prio", roce.cnp_priority)):
        if value is not None:
            values.append({"path": f"/sys/class/net/{interface}/ecn/roce_np/{name}", "value": str(value)})
            if address:
                values.append({"path": f"/sys/kernel/debug/mlx5/{address}/cc_params/np_cnp_{key}", "value": str(value)})
    return values


def _file(path: str, *lines: str) -> dict[str, str]:
    return {"path": path, "content": "\n".join((*lines, "")), "mode": "0644"}


def _names(wanted: Request) -> Iterator[dict[str, str]]:
    """Return the rule that names adapters: those with a name of their own first, all others by the policy."""
    if not (wanted.names or wanted.fixed_names):
        return
    match = 'ACTION=="add", SUBSYSTEM=="infiniband"'
    fixed = [
        f'{match}, ATTR{{node_guid}}=="{guid}", PROGRAM="rdma_rename %k NAME_FIXED {name}", GOTO="allreduce_named"'
        for guid, name in sorted(wanted.fixed_names.items())
    ]
    policy = f'{match}, PROGRAM="rdma_rename %k NAME_{(wanted.names or "kernel").upper()}"'
    yield _file(NAMES, HEAD, *fixed, policy, 'LABEL="allreduce_named"')


def _peermem() -> Iterator[dict[str, str]]:
    yield _file(LOADED, HEAD, MODULE)
    yield _file(ORDER, HEAD, f"softdep {MODULE} pre: ib_core ib_uverbs", f"softdep nvidia post: {MODULE}")


def _links(interfaces: dict[str, dict[str, list[Any]]]) -> Iterator[dict[str, str]]:
    """Return the declaration, and for each interface the link that starts our unit whenever the interface appears."""
    if not interfaces:
        return
    text = json.dumps({"interfaces": interfaces}, indent=1, sort_keys=True)
    yield _file(DECLARATION, text)
    for name in interfaces:
        escaped = escape(name)
        device = f"sys-subsystem-net-devices-{escaped}.device"
        path = f"{UNITS}/{device}.wants/{SERVICE}@{escaped}.service"
        yield {"path": path, "link": f"{UNITS}/{SERVICE}@.service"}


def escape(name: str) -> str:
    """Return a name as a part of a systemd unit's name: systemd.unit(5), "String escaping for inclusion in unit names"."""
    return re.sub(r"^\.|[^A-Za-z0-9:_.]", lambda one: "".join(f"\\x{byte:02x}" for byte in one.group().encode()), name)
