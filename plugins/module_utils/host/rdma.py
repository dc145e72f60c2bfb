# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host channel adapters as sysfs shows them, the interfaces of their ports, and IP over InfiniBand."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.sysfs import MELLANOX, read_nics

# ARPHRD_INFINIBAND of linux/if_arp.h.
INFINIBAND = 32
# Models that are virtual functions: MLX5_PCI_DEV_IS_VF in Linux, mlx5/core/main.c. In a guest nothing else tells.
VIRTUAL = ("0x1012", "0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e", "0xa2d3")


def read_adapters(tree):
    """Return every adapter: those of the machine's model, with driver, firmware, GUID and physical states. tree: of /sys.

    ``node_type``: CA of InfiniBand and RoCE, RNIC of iWARP, unspecified of EFA (rdma_node_type of Linux, rdma/ib_verbs.h).
    ``p2p``: what EFA's own driver says of the GPUs' (amzn/amzn-drivers, efa_sysfs.c); None: another driver, or the kernel's EFA.
    """
    found = []
    for nic in read_nics(tree):
        base = "/class/infiniband/" + nic["name"]
        device = tree.resolve(base + "/device")
        driver = tree.link(device + "/driver")
        found.append(
            {
                "name": nic["name"],
                "pci_bus_id": nic["pci_bus_id"],
                "numa_node": nic["numa_node"],
                "driver": driver.rpartition("/")[2] if driver else None,
                "firmware": tree.text(base + "/fw_ver") or None,
                "board": tree.text(base + "/board_id") or None,
                "guid": tree.text(base + "/node_guid") or None,
                "virtual": _is_virtual(tree, device, nic["pci_device_id"]),
                "node_type": _word(tree, base + "/node_type"),
                "p2p": tree.text(device + "/p2p"),
                "ports": [
                    dict(port, physical_state=_word(tree, "%s/ports/%d/phys_state" % (base, port["port"])))
                    for port in nic["ports"]
                ],
            }
        )
    return found


def _is_virtual(tree, device, model):
    return tree.exists(device + "/physfn") or tree.number(device + "/vendor") == MELLANOX and model in VIRTUAL


def _word(tree, path):
    """Return the word of ``5: LinkUp``."""
    text = tree.text(path)
    return text.split(":")[-1].strip() if text else None


def interfaces(adapters, layer):
    """Return the network interfaces of ports with this link layer (Ethernet or InfiniBand), sorted."""
    ports = [port for adapter in adapters for port in adapter["ports"] if port["link_layer"] == layer]
    return sorted({name for port in ports for name in port["netdevs"]})


def read_ipoib(tree):
    """Return {interface: {mode, mtu}} of every interface that carries IP over InfiniBand. tree: of /sys."""
    found = {}
    for name in tree.names("/class/net"):
        base = "/class/net/" + name
        if tree.number(base + "/type") == INFINIBAND:
            found[name] = {"mode": tree.text(base + "/mode") or None, "mtu": tree.number(base + "/mtu")}
    return found
