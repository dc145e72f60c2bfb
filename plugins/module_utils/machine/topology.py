# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Distances between GPUs and NICs in the codes of "nvidia-smi topo -m"; pure functions on what was read."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# Nearest first. NV<n> is nearer than all of them.
ORDER = ("X", "PIX", "PXB", "PHB", "NODE", "SYS")
# Below one PCIe switch, or switches of one.
NEAR = ("PIX", "PXB")


def gpu_label(gpu):
    """Return ``GPU<index>``; a GPU that NVML does not show has no index and goes by its PCI address."""
    return gpu["pci_bus_id"] if gpu["index"] is None else "GPU%s" % gpu["index"]


def pci_code(path, other_path, numa, other_numa, several_numa_nodes):
    """Return the code for two devices by their PCI paths (see sysfs.read_path) and NUMA nodes.

    None when it cannot be known. Two devices below one switch have its upstream port in common and one downstream port
    each: PIX. With more bridges between them it is PXB, over the host bridge PHB.
    """
    if not path or not other_path:
        return None
    common = 0
    while common < min(len(path), len(other_path)) and path[common] == other_path[common]:
        common += 1
    if common > 1:
        bridges = max(len(path), len(other_path)) - common - 1
        return "PIX" if bridges <= 1 else "PXB"
    if common == 1:
        return "PHB"
    if not several_numa_nodes:
        return "NODE"
    if numa is None or other_numa is None:
        return None
    return "NODE" if numa == other_numa else "SYS"


def bridges_between(path, other):
    """Return bridges that traffic passes without the root complex, the one that both have in common first; None where there
    is no such way.
    """
    common = 0
    while common < min(len(path), len(other)) - 1 and path[common] == other[common]:
        common += 1
    return path[common - 1 : -1] + other[common:-1] if common > 1 else None


def peer_bridges(gpus, nics, topology, paths):
    """Return the bridges on the way between GPUs that NVLink does not join, and from GPUs to adapters.

    ``paths``: {PCI address of a GPU or name of an adapter: PCI path}. What redirects elsewhere, as at the root port of a single GPU,
    disturbs nothing.
    """
    found = set()
    ends = [(gpu_label(gpu), paths.get(gpu["pci_bus_id"]) or []) for gpu in gpus]
    others = ends + [(nic["name"], paths.get(nic["name"]) or []) for nic in nics]
    for label, path in ends:
        for other, other_path in others:
            if other != label and not (topology[label][other] or "").startswith("NV"):
                found.update(bridges_between(path, other_path) or ())
    return found


def nvlink_count(gpu, other):
    """Count the active links from one GPU to the other: direct ones, else those that both have to NVSwitches."""
    direct = [link for link in gpu["nvlinks"] if link["active"] and link["remote_pci_bus_id"] == other["pci_bus_id"]]
    if direct:
        return len(direct)
    return min(switch_links(end) for end in (gpu, other))


def switch_links(gpu):
    """Count the active links to NVSwitches; where NVML names the end of none, as in virtual machines, all lead to one."""
    active = [link for link in gpu["nvlinks"] if link["active"]]
    named = [link for link in active if link["remote_type"] or link["remote_pci_bus_id"]]
    return len([link for link in named if link["remote_type"] == "nvswitch"]) if named else len(active)


def gpu_code(gpu, other, level):
    links = nvlink_count(gpu, other)
    return "NV%d" % links if links else level


def build_topology(gpus, nics, paths, levels, several_numa_nodes):
    """Return {device: {device: code}} over GPUs, then NICs. ``paths``: {name or address: PCI path}."""
    devices = [(gpu_label(gpu), gpu["pci_bus_id"], gpu) for gpu in gpus] + [
        (nic["name"], nic["name"], nic) for nic in nics
    ]
    matrix = {}
    for label, key, device in devices:
        row = matrix.setdefault(label, {})
        for other_label, other_key, other in devices:
            if label == other_label:
                row[other_label] = "X"
                continue
            code = levels.get((key, other_key)) or pci_code(
                paths.get(key), paths.get(other_key), device["numa_node"], other["numa_node"], several_numa_nodes
            )
            both_gpus = "nvlinks" in device and "nvlinks" in other
            row[other_label] = gpu_code(device, other, code) if both_gpus else code
    return matrix


def natural_key(name):
    """Return a sort key in which mlx5_2 comes before mlx5_10; no two names have the same key."""
    parts = re.findall("[0-9]+|[^0-9]+", name)
    # Digits by their number and themselves, since a node may say more of them than Python makes a number of.
    digits = [part.lstrip("0") if part[0] in "0123456789" else None for part in parts]
    return [(1, 0, "", part) if found is None else (0, len(found), found, part) for found, part in zip(digits, parts)]


def active_ports(nic):
    return [port for port in nic["ports"] if port["state"] == "ACTIVE"]


def is_of_verbs(port):
    """Return True if NCCL itself may use a port: it takes two link layers (2.30.7, src/transport/net_ib/init.cc), and EFA has neither."""
    return port["link_layer"] in ("InfiniBand", "Ethernet", None)
