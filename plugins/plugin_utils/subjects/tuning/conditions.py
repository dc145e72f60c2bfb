# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions of the table: what is known of a node and of its training, in the table's words."""

from __future__ import annotations

import re

from ...documents.gpu_node import GpuNode
from ...documents.tuning import TunedNode
from .request import Request

CONDITIONS = ("always", "tcp", "rdma", "shared_subnet", "many_neighbours", "numa_bound")
# The kernel's own threshold is 512, where it begins to collect aggressively.
MANY = 500
# GPUs that share their package with a Grace processor.
GRACE = re.compile(r"\bG[HB]\d{3}\b")


def conditions(wanted: Request, node: TunedNode, gpu_node: GpuNode) -> frozenset[str]:
    """Return the conditions that hold."""
    bound = wanted.ranks_bound or any(GRACE.search(gpu.name or "") for gpu in gpu_node.gpus)
    holds = {
        "always": True,
        "shared_subnet": bool(node.shared_subnets),
        "many_neighbours": max(wanted.neighbours, node.neighbours) > MANY,
        "numa_bound": bound and node.numa_nodes > 1,
        transport(wanted, gpu_node): True,
    }
    return frozenset(name for name, value in holds.items() if value)


def transport(wanted: Request, gpu_node: GpuNode) -> str:
    """Return the transport that training uses: the user's word, else rdma where an adapter has a port that is active."""
    if wanted.transport != "auto":
        return wanted.transport
    ports = (port for nic in gpu_node.nics for port in nic.ports)
    return "rdma" if any((port.state or "").upper().endswith("ACTIVE") for port in ports) else "tcp"
