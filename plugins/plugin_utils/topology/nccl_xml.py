# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file that NCCL_TOPO_FILE names, from a measured node: a pure function of gpu_node.

The format is that of NCCL's src/graph/xml.cc and topo.cc: system > cpu > pci … > gpu > nvlink, and pci > nic > net.
What is left out NCCL reads from the system. gpu_node knows distances and not the bridges themselves, so a bridge has an
address of a bus that is on no machine, as in the files that ship with aws-ofi-nccl: PIX is one bridge, PXB more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from xml.etree import ElementTree as Xml

from ...module_utils.machine.topology import gpu_label
from .islands import connected
from .nics import cpu_numbers

SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}  # GT/s by PCIe generation
BRIDGE, GPU, NVSWITCH = "0x060400", "0x030200", "0x068000"
NIC = {"InfiniBand": "0x020700", "Ethernet": "0x020000"}
# NCCL's own name for an NVSwitch that a virtual machine does not show.
HIDDEN_NVSWITCH = "fffffff:ffff:ff"


def nccl_topology_xml(gpu_node: Mapping) -> str:
    """Return the text of the file; raise ValueError where PCI addresses are not known, as in a pasted recording."""
    devices = {gpu_label(gpu): gpu for gpu in gpu_node["gpus"]} | {nic["name"]: nic for nic in gpu_node["nics"]}
    lost = [name for name, device in devices.items() if not device["pci_bus_id"]]
    if lost:
        raise ValueError(f"The PCI address of {', '.join(lost)} is not known; measure the node with gpu_facts.")
    system = Xml.Element("system", version="1")
    bridges = (f"ffff:{number // 32:02x}:{number % 32:02x}.0" for number in count())
    root_ports = connected(devices, gpu_node["topology"], lambda code: code in ("PIX", "PXB"))
    for numa in sorted({_numa(group, devices) for group in root_ports}):
        cpu = Xml.SubElement(system, "cpu", numaid=str(numa))
        cpus = next(
            (gpu["cpu_affinity"] for gpu in gpu_node["gpus"] if _node(gpu) == numa and gpu["cpu_affinity"]), None
        )
        if cpus:
            cpu.set("affinity", cpu_mask(cpus))
        for group in root_ports:
            if _numa(group, devices) == numa:
                _add_group(cpu, group, devices, gpu_node["topology"], bridges)
    Xml.indent(system)
    # As NCCL's own dump closes them; its reader knows what it writes.
    return Xml.tostring(system, encoding="unicode").replace(" />", "/>") + "\n"


def cpu_mask(cpus: str) -> str:
    """Return the kernel's cpumap of a CPU list, 32 CPUs to a word.

    >>> cpu_mask("0-3,36")
    '00000010,0000000f'
    """
    mask = sum(1 << cpu for cpu in cpu_numbers(cpus))
    words = range((mask.bit_length() + 31) // 32)
    return ",".join(f"{mask >> 32 * word & 0xFFFFFFFF:08x}" for word in reversed(words))


def _node(device: Mapping) -> int:
    """NCCL's -1 for a device whose NUMA node is not known."""
    return -1 if device["numa_node"] is None else device["numa_node"]


def _numa(group: Iterable[str], devices: Mapping[str, Mapping]) -> int:
    return max(_node(devices[name]) for name in group)


def _add_group(cpu: Xml.Element, group: list[str], devices: Mapping, topology: Mapping, bridges: Iterator[str]) -> None:
    """Add the devices of one root port: alone, below one bridge (all PIX), or below bridges of a bridge (PXB)."""
    switches = connected(group, topology, lambda code: code == "PIX")
    above = _bridge(cpu, bridges) if len(group) > 1 else cpu
    for switch in switches:
        parent = _bridge(above, bridges) if len(switches) > 1 else above
        for name in switch:
            _add_gpu(parent, devices[name]) if "nvlinks" in devices[name] else _add_nic(parent, devices[name])


def _bridge(parent: Xml.Element, bridges: Iterator[str]) -> Xml.Element:
    return Xml.SubElement(parent, "pci", {"busid": next(bridges), "class": BRIDGE})


def _add_gpu(parent: Xml.Element, gpu: Mapping) -> None:
    pci = Xml.SubElement(parent, "pci", {"busid": gpu["pci_bus_id"], "class": GPU})
    generation, width = gpu["pcie"]["max_generation"], gpu["pcie"]["width"]
    if generation in SPEEDS and width:
        pci.set("link_speed", f"{SPEEDS[generation]} GT/s PCIe")
        pci.set("link_width", str(width))
    if gpu["index"] is None:
        return
    element = Xml.SubElement(pci, "gpu", dev=str(gpu["index"]))
    if gpu["compute_capability"]:
        element.set("sm", gpu["compute_capability"].replace(".", ""))
    links = Counter(
        (link["remote_pci_bus_id"] or HIDDEN_NVSWITCH, NVSWITCH if link["remote_type"] == "nvswitch" else GPU)
        for link in gpu["nvlinks"]
        if link["active"] and (link["remote_pci_bus_id"] or link["remote_type"] == "nvswitch")
    )
    for (target, kind), number in sorted(links.items()):
        Xml.SubElement(element, "nvlink", target=target, count=str(number), tclass=kind)


def _add_nic(parent: Xml.Element, nic: Mapping) -> None:
    layer = next((port["link_layer"] for port in nic["ports"]), "Ethernet")
    pci = Xml.SubElement(parent, "pci", {"busid": nic["pci_bus_id"], "class": NIC.get(layer, NIC["Ethernet"])})
    element = Xml.SubElement(pci, "nic")
    for port in nic["ports"]:
        net = Xml.SubElement(element, "net", name=nic["name"], port=str(port["port"]))
        if port["rate_gbps"]:
            net.set("speed", str(int(port["rate_gbps"] * 1000)))
