# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of the adapters for each GPU: fit for training, then near; pure functions of what was read."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .rails import training_class
from .topology import ORDER, active_ports, gpu_label, natural_key


def nearest_nics(gpu, topology, nics, wanted, distances=None):
    """Return the NIC names for one GPU, best first: those that are fit for training, by distance, by socket, by PCI address.

    ``wanted``: (link layer, rate) of the node's rails, see rails.training_class. ``distances``: see sysfs.read_numa_distances.
    """
    groups = {}
    for nic in nics:
        groups.setdefault(fitness(nic, wanted), []).append(nic)
    row = topology.get(gpu_label(gpu), {})
    ordered = []
    for fit in sorted(groups):
        ranks = nic_ranks(gpu, row, groups[fit], distances)
        ordered += sorted(groups[fit], key=lambda nic: (ranks[nic["name"]], address_key(nic)))  # pylint: disable=cell-var-from-loop
    return [nic["name"] for nic in ordered]


def nic_ranks(gpu, row, nics, distances=None):
    """Return {NIC: rank}, the lowest for the nearest, by the codes of the GPU's row and, for one code, by the kernel's node distances.

    What was not measured orders nothing: next to an unknown code, only those say something that are the nearest (PIX, PXB) or
    the farthest (SYS), and next to an unknown node distance none does.
    """
    codes = {nic["name"]: row.get(nic["name"]) for nic in nics}
    unknown = any(code not in ORDER for code in codes.values())
    nodes = {nic["name"]: node_distance(gpu["numa_node"], nic["numa_node"], distances) for nic in nics}
    blind = None in nodes.values()
    return {name: (code_rank(codes[name], unknown), 0 if blind else nodes[name]) for name in codes}


def code_rank(code, unknown):
    """Return the rank of a code; ``unknown``: whether another one is, which may be nearer or farther than what is between."""
    if code in ORDER and not (unknown and code in ("PHB", "NODE")):
        return ORDER.index(code)
    return ORDER.index("NODE")


def node_distance(node, other, distances=None):
    """Return the kernel's distance of two NUMA nodes, 10 within one; None where it is not known."""
    if node is None or other is None:
        return None
    return 10 if node == other else ((distances or {}).get(str(node)) or {}).get(str(other))


def fitness(nic, wanted):
    """Return the sort key before distance, the lowest for the best: a port at the rails' link layer and rate, then what may be one
    (its rate is not known), then other ports that are up, then those of which nothing is known, then those that are down.
    """
    best = (4, 0, 0) if nic["ports"] and all(port["state"] for port in nic["ports"]) else (3, 0, 0)
    for port in active_ports(nic):
        layer, rate = wanted or (port["link_layer"], port["rate_gbps"])
        same = port["link_layer"] == layer
        if same and port["rate_gbps"] in (rate, None):
            fit = (0 if port["rate_gbps"] == rate else 1, 0, 0)
        else:
            fit = (2, not same, -(port["rate_gbps"] or 0))
        best = min(best, fit)
    return best


def address_key(nic):
    """Return the key that orders equals, the same on every run: the PCI address, and the name where that is not known."""
    return nic.get("pci_bus_id") is None, nic.get("pci_bus_id") or "", natural_key(nic["name"])


def build_affinity(gpus, nics, topology, distances=None):
    """Return {GPU: {``cpu_affinity``, ``numa_node``, ``nics`` best first}}; see nearest_nics."""
    wanted = training_class(gpus, nics, topology)
    return {
        gpu_label(gpu): {
            "cpu_affinity": gpu["cpu_affinity"],
            "numa_node": gpu["numa_node"],
            "nics": nearest_nics(gpu, topology, nics, wanted, distances),
        }
        for gpu in gpus
    }
