# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The watched and the watching hosts with their addresses: what the inventory's groups say, so that a host that left is gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...cluster.address import cluster_address
from .programs import PORTS
from .request import CONTROLLERS, NODES


@dataclass(frozen=True)
class Peer:
    """A host of the inventory; address None: not known."""

    name: str
    address: str | None


@dataclass(frozen=True)
class Peers:
    """The hosts of the cluster that role monitoring is for."""

    nodes: tuple[Peer, ...] = ()
    controllers: tuple[Peer, ...] = ()
    dcgm: tuple[str, ...] = ()  # nodes that have NVIDIA's exporter

    @property
    def unknown(self) -> list[str]:
        """Return the hosts whose address is not known."""
        return sorted({one.name for one in (*self.nodes, *self.controllers) if not one.address})


def peers(
    known: Mapping[str, Mapping[str, Any]], groups: Mapping[str, Iterable[str]], state: str, dcgm: Iterable[str] = ()
) -> Peers:
    """Return the hosts whose state is present.

    known: the variables of the hosts, without those that are left out; state: of those whose variables say nothing
    """

    def of(group: str) -> tuple[Peer, ...]:
        members = (name for name in groups.get(group, ()) if name in known)
        there = (name for name in members if str(known[name].get("monitoring_state", state)) == "present")
        return tuple(Peer(name, cluster_address(known[name])) for name in there)

    return Peers(of(NODES), of(CONTROLLERS), tuple(dcgm))


def targets(found: Peers) -> dict[str, list[dict[str, Any]]]:
    """Return {job: content of a file of targets}, in the form of file_sd_config."""
    hosts = {
        "node": found.nodes,
        "dcgm": [one for one in found.nodes if one.name in found.dcgm],
        "prometheus": found.controllers,
        "alertmanager": found.controllers,
    }
    return {
        job: [
            {"targets": [place(one.address, PORTS[job])], "labels": {"node": one.name}}
            for one in members
            if one.address
        ]
        for job, members in hosts.items()
    }


def place(address: str, port: int) -> str:
    """Return address and port as one text."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
