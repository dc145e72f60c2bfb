# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The door to sysfs and procfs: PCI devices, host channel adapters and NUMA nodes, as the kernel shows them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import pci_config
from .topology import natural_key

NVIDIA = 0x10DE
GPU_CLASSES = (0x0300, 0x0302)
BRIDGE_CLASS = 0x0680
MELLANOX, AMAZON = 0x15B3, 0x1D0F
# Models of Amazon's Elastic Fabric Adapter: amzn/amzn-drivers, efa_main.c.
EFA = ("0xefa0", "0xefa1", "0xefa2", "0xefa3")
INFINIBAND, NETWORK = (0x0207,), (0x0200, 0x0207)
FOR_GUESTS = ("vfio", "pci-stub", "xen-pciback")
ADDRESS = re.compile(r"^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
HOST_BRIDGE = re.compile(r"^pci[0-9a-f]{4,}:[0-9a-f]{2}$")


def normalise_address(address):
    """Return ``00000000:07:00.0`` or ``07:00.0`` as ``0000:07:00.0``; None stays None."""
    if not address:
        return None
    parts = address.lower().split(":")
    domain = int(parts[0], 16) if len(parts) == 3 else 0
    return "%04x:%s:%s" % (domain, parts[-2], parts[-1])


def read_vendors(tree):
    """Return {PCI address: number of its vendor}."""
    base = "/bus/pci/devices"
    return {address: tree.number("%s/%s/vendor" % (base, address)) for address in tree.names(base)}


def read_pci_devices(tree, vendors=None):
    """Return {address: device} of NVIDIA's GPUs and NVSwitches; ``vendors``: see read_vendors, None: they are read here.

    A device has ``kind`` (gpu|nvswitch), ``device_id`` (int), ``subsystem_id`` (``10de:1463``), ``vgpu``, ``numa_node``,
    ``cpu_affinity``, ``path`` (host bridge first, then the bridges, then the device itself), ``link`` ({width,
    max_width, generation, max_generation}), ``driver``.
    """
    devices = {}
    for address, vendor in sorted((read_vendors(tree) if vendors is None else vendors).items()):
        base = "/bus/pci/devices/" + address
        if vendor == NVIDIA:
            kind = _kind(tree.number(base + "/class"))
            if kind:
                vgpu = read_vgpu(tree, address) if kind == "gpu" else None
                devices[address] = dict(read_pci_device(tree, address), kind=kind, vgpu=vgpu)
    return devices


def _kind(pci_class):
    code = pci_class >> 8 if pci_class is not None else None
    return "gpu" if code in GPU_CLASSES else "nvswitch" if code == BRIDGE_CLASS else None


def read_pci_device(tree, address):
    """Return one device; its parts are None where the file is missing."""
    base = "/bus/pci/devices/" + address
    numa = tree.number(base + "/numa_node")
    driver = tree.link(base + "/driver")
    return {
        "device_id": tree.number(base + "/device"),
        "subsystem_id": _subsystem(tree, base),
        "numa_node": _numa(tree, numa),
        "cpu_affinity": tree.text(base + "/local_cpulist") or None,
        "path": read_path(tree, address),
        "driver": driver.rpartition("/")[2] if driver else None,
        "link": {
            "width": _width(tree.text(base + "/current_link_width")),
            "max_width": _width(tree.text(base + "/max_link_width")),
            "generation": _generation(tree.text(base + "/current_link_speed")),
            "max_generation": _generation(tree.text(base + "/max_link_speed")),
        },
    }


def hexadecimal(number):
    return None if number is None else "0x%04x" % number


def _subsystem(tree, base):
    parts = tree.number(base + "/subsystem_vendor"), tree.number(base + "/subsystem_device")
    return None if None in parts else "%04x:%04x" % parts


def read_path(tree, address):
    """Return [``pci0000:00``, bridge …, device] from the resolved link of the device; [] where it says nothing."""
    parts = tree.resolve("/bus/pci/devices/" + address).split("/")
    path = [part for part in parts if ADDRESS.match(part) or HOST_BRIDGE.match(part)]
    return path if path and HOST_BRIDGE.match(path[0]) else []


def read_numa_nodes(tree):
    """Return the numbers of the NUMA nodes; [] where the kernel shows none."""
    names = tree.names("/devices/system/node")
    return sorted(int(name[4:]) for name in names if re.match(r"node\d+$", name))


def read_numa_distances(tree):
    """Return {node: {node: distance}} with the numbers as text, as facts have them; {} where the kernel does not tell.

    A file has the distances to all nodes that are online, in their order (Documentation/ABI/stable/sysfs-devices-node).
    """
    nodes = [str(node) for node in read_numa_nodes(tree)]
    found = {}
    for node in nodes:
        columns = (tree.text("/devices/system/node/node%s/distance" % node) or "").split()
        if len(columns) != len(nodes) or not all(column.isdigit() for column in columns):
            return {}
        found[node] = dict(zip(nodes, map(int, columns)))
    return found


def _numa(tree, number):
    """Return the NUMA node; the kernel's -1 means "no information", and with a single node there is only one answer."""
    if number is not None and number >= 0:
        return number
    nodes = read_numa_nodes(tree)
    return nodes[0] if number == -1 and len(nodes) == 1 else None


def _width(text):
    """Lanes; the kernel writes 0 and 63 or 255 for links that are down."""
    return int(text) if text and text.isdigit() and 0 < int(text) <= 32 else None


GENERATIONS = {"2.5": 1, "5": 2, "5.0": 2, "8": 3, "8.0": 3, "16": 4, "16.0": 4, "32": 5, "32.0": 5, "64": 6, "64.0": 6}


def _generation(text):
    """Return the PCIe generation of a link speed: ``16.0 GT/s PCIe`` → 4."""
    return GENERATIONS.get(text.split()[0]) if text else None


def read_without_rdma(tree, nics, vendors):
    """Return [{``pci_bus_id``, ``driver``}] of adapters that should have an RDMA device, and none of whose functions has one.

    Those are InfiniBand's, EFA's, and of a model of which another has one. Functions of one card may share a device (RoCE LAG), virtual
    functions may be a guest's, and so may what another driver has.
    """
    models = {(vendors.get(nic["pci_bus_id"]), nic["pci_device_id"]) for nic in nics if nic["pci_bus_id"]}
    known = {vendor for vendor, dummy in models} | {MELLANOX, AMAZON}
    cards = {nic["pci_bus_id"].rpartition(".")[0] for nic in nics if nic["pci_bus_id"]}
    found = []
    for address, vendor in sorted(vendors.items()):
        base = "/bus/pci/devices/" + address
        if vendor not in known or address.rpartition(".")[0] in cards or tree.exists(base + "/physfn"):
            continue
        code, driver = tree.number(base + "/class"), (tree.link(base + "/driver") or "").rpartition("/")[2] or None
        model = vendor, hexadecimal(tree.number(base + "/device"))
        wanted = NETWORK if model in models or vendor == AMAZON and model[1] in EFA else INFINIBAND
        if code is not None and code >> 8 in wanted and not (driver or "").startswith(FOR_GUESTS):
            found.append({"pci_bus_id": address, "driver": driver})
    return found


def read_nics(tree):
    """Return the ``nics`` of gpu_node, plus ``path`` of the PCI device (taken out again by the model)."""
    nics = []
    for name in sorted(tree.names("/class/infiniband"), key=natural_key):
        base = "/class/infiniband/" + name
        address = tree.resolve(base + "/device").rpartition("/")[2]
        address = address if ADDRESS.match(address) else None
        device = read_pci_device(tree, address) if address else {"numa_node": None, "path": [], "device_id": None}
        ports = [_port(tree, name, int(port)) for port in tree.names(base + "/ports") if port.isdigit()]
        nics.append(
            {
                "name": name,
                "pci_bus_id": address,
                "pci_device_id": hexadecimal(device["device_id"]),
                "numa_node": device["numa_node"],
                "firmware_version": tree.text(base + "/fw_ver") or None,
                "board_id": tree.text(base + "/board_id") or None,
                "ports": sorted(ports, key=lambda port: port["port"]),
                "path": device["path"],
            }
        )
    return nics


def _port(tree, name, number):
    base = "/class/infiniband/%s/ports/%d" % (name, number)
    state = tree.text(base + "/state")
    rate = re.match(r"([\d.]+)", tree.text(base + "/rate") or "")
    layer = tree.text(base + "/link_layer")
    return {
        "port": number,
        "state": state.split(":")[-1].strip() if state else None,
        "link_layer": layer,
        "rate_gbps": _integral(float(rate.group(1))) if rate else None,
        "netdevs": _netdevs(tree, name, number),
        "rocev2_gid_index": _rocev2_gid_index(tree, base) if layer == "Ethernet" else None,
    }


def _integral(number):
    return int(number) if number == int(number) else number


def _netdevs(tree, name, number):
    """Network interfaces of this port: its GIDs name them; an InfiniBand port's are those with the port's number."""
    base = "/class/infiniband/%s" % name
    ndevs = "%s/ports/%d/gid_attrs/ndevs" % (base, number)
    named = {tree.text("%s/%s" % (ndevs, index)) for index in tree.names(ndevs)} - {None, ""}
    if named:
        return sorted(named)
    ports = tree.names(base + "/ports")
    netdevs = tree.names(base + "/device/net")
    return [dev for dev in netdevs if len(ports) == 1 or _dev_port(tree, base, dev) == number - 1]


def _dev_port(tree, base, dev):
    return tree.number("%s/device/net/%s/dev_port" % (base, dev))


def _rocev2_gid_index(tree, base):
    """Return the lowest RoCE v2 GID of an IPv4 address, else of a routable one; link-local and empty ones do not count."""
    types = base + "/gid_attrs/types"
    candidates = []
    for index in sorted(int(name) for name in tree.names(types) if name.isdigit()):
        gid = tree.text("%s/gids/%d" % (base, index)) or ""
        if tree.text("%s/%d" % (types, index)) == "RoCE v2" and gid.strip("0:"):
            ipv4 = gid.startswith("0000:0000:0000:0000:0000:ffff:")
            if ipv4 or not gid.startswith("fe80:"):
                candidates.append((not ipv4, index))
    return min(candidates)[1] if candidates else None


def read_acs_redirect(tree, address):
    """Return True if ACS redirects peer-to-peer traffic upwards at this bridge; None when unreadable: only root reads that far."""
    found = pci_config.describe(pci_config.load(tree.path("/bus/pci/devices/%s/config" % address)))
    return bool((found["acs"] or 0) & pci_config.ACS_REDIRECT) if found["readable"] else None


def read_vgpu(tree, address):
    """Return True if a hypervisor's vGPU software made this GPU; None when unreadable.

    Such a GPU has the signature VF in its vendor-specific capability (0x09), by which NVIDIA's GPU feature discovery
    knows it, too. Capabilities lie beyond the first 64 bytes, which only root reads.
    """
    config = pci_config.load(tree.path("/bus/pci/devices/%s/config" % address), pci_config.PCI_CFG_SPACE_SIZE)
    if len(config) <= 0x40:
        return None
    offset, seen = bytearray(config)[0x34], set()
    while 0x40 <= offset <= len(config) - 5 and offset not in seen:
        seen.add(offset)
        if config[offset : offset + 1] == b"\x09" and config[offset + 3 : offset + 5] == b"VF":
            return True
        offset = bytearray(config)[offset + 1]
    return False
