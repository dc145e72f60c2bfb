# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The measured machine as it is drawn: devices nested by closeness, their NVLinks, the matrix. From gpu_node alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.machine.topology import gpu_label
from ..topology.islands import connected, nvlink_islands
from .text import clean, mapping, mappings, plural, texts

# What each code of "nvidia-smi topo -m" says of two devices, nearest first.
CODES = {
    "PIX": "below one PCIe switch",
    "PXB": "over several PCIe switches",
    "PHB": "over one PCIe host bridge",
    "NODE": "in one NUMA node",
    "SYS": "between NUMA nodes",
}
_NESTED = ("PHB", "PXB", "PIX")


@dataclass(frozen=True)
class Device:
    """A GPU or a network adapter. ``links`` are its active NVLinks to switches."""

    kind: str  # gpu | nic
    name: str  # as in the matrix
    title: str
    details: tuple[str, ...]
    fault: str  # what is wrong, in a few words; empty where nothing is
    links: int = 0
    faulty_links: str = ""  # such as "10/12"


@dataclass(frozen=True)
class Fault:
    """A GPU's worst finding: the check that has it, and a few words."""

    check: str
    text: str


@dataclass(frozen=True)
class Group:
    """Devices, or groups of them, that are near each other: ``code`` of CODES, or NUMA."""

    code: str
    label: str
    note: str
    members: tuple[Device | Group, ...]


@dataclass(frozen=True)
class Link:
    """NVLinks between two GPUs without a switch between them."""

    one: str
    two: str
    count: int


@dataclass(frozen=True)
class Machine:
    """Everything the picture, its words and the matrix say. Equal machines are drawn once."""

    groups: tuple[Group, ...]  # NUMA nodes, in the order of their first GPU
    links: tuple[Link, ...]
    switches: int  # NVSwitches on the PCI bus; a fabric may also be out of the machine's sight
    fabric: bool
    islands: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    matrix: tuple[tuple[str, ...], ...]
    problems: tuple[str, ...]

    @property
    def codes(self) -> dict[str, str]:
        """The codes that occur, with their meaning."""
        found = {code for row in self.matrix for code in row}
        return {code: meaning for code, meaning in CODES.items() if code in found}

    @property
    def words(self) -> str:
        """What the picture shows, for who cannot see it."""
        found = [f"{group.label}: {', '.join(device.name for device in devices(group))}." for group in self.groups]
        if self.fabric:
            joined = sorted({one.links for group in self.groups for one in devices(group) if one.links})
            counts = " or ".join(str(count) for count in joined)
            found.append(f"{self.fabric_label} join the GPUs with {counts or 'no'} NVLinks each.")
        found += [f"{link.one} and {link.two}: {plural(link.count, 'NVLink')}." for link in self.links]
        return " ".join(found)

    @property
    def fabric_label(self) -> str:
        return plural(self.switches, "NVSwitch") if self.switches else "NVLink switches"


def devices(item: Device | Group) -> list[Device]:
    """All devices of a group, at any depth."""
    return [item] if isinstance(item, Device) else [one for member in item.members for one in devices(member)]


def build(gpu_node: Mapping[str, Any], faults: Mapping[str, Fault]) -> Machine | None:
    """The machine, None where no GPU was measured. faults: {GPU: its worst finding}, as health.faults gives them."""
    gpus = measured_gpus(gpu_node)
    if not gpus:
        return None
    topology = {clean(name): mapping(row) for name, row in mapping(gpu_node.get("topology")).items()}
    found = [(_gpu(gpu, gpus, faults), gpu.get("numa_node"), gpu.get("cpu_affinity")) for gpu in gpus]
    found += [(_nic(nic), nic.get("numa_node"), None) for nic in mappings(gpu_node.get("nics"))]
    names = tuple(device.name for device, _numa, _cpus in found)
    islands = nvlink_islands({"gpus": gpus, "topology": topology})
    switches = mapping(gpu_node.get("nvswitches")).get("count")
    return Machine(
        groups=tuple(_numa_nodes(found, topology)),
        links=tuple(_links(gpus)),
        switches=switches if isinstance(switches, int) else 0,
        fabric=bool(switches) or any(_switched(gpu) for gpu in gpus),
        islands=tuple(tuple(island) for island in islands if len(island) > 1),
        names=names,
        matrix=tuple(tuple(clean(topology.get(one, {}).get(two)) or "?" for two in names) for one in names),
        problems=texts(gpu_node.get("problems")),
    )


def measured_gpus(gpu_node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the GPUs that have an address, each with what gpu_label needs."""
    found = [gpu for gpu in mappings(gpu_node.get("gpus")) if "pci_bus_id" in gpu]
    return [{**gpu, "index": gpu.get("index"), "pci_bus_id": clean(gpu["pci_bus_id"])} for gpu in found]


def _gpu(gpu: Mapping[str, Any], gpus: list[Mapping[str, Any]], faults: Mapping[str, Fault]) -> Device:
    pcie, name = mapping(gpu.get("pcie")), gpu_label(gpu)
    width, full = pcie.get("width"), pcie.get("max_width")
    narrow = bool(width and full and width < full)
    silent = "nvml" not in texts(gpu.get("seen_by"))
    mig = mappings(mapping(gpu.get("mig")).get("instances"))
    model = clean(gpu.get("name"))
    for maker in ("NVIDIA ", "GeForce ", "Tesla "):
        model = model.removeprefix(maker)
    lanes = f"PCIe x{clean(width)}" + (f" of x{clean(full)}" if narrow else "") if width else ""
    slices = plural(len(mig), "MIG instance") if mig else ""
    known = faults.get(name)
    if narrow and known and known.check == "pcie_width":
        lanes = ""
    fault = "does not answer" if silent else known.text if known else "narrow PCIe link" if narrow else ""
    active, most = len(_switched(gpu)), max(len(_switched(one)) for one in gpus)
    return Device(
        "gpu",
        name,
        "GPU" if gpu.get("index") is None else name,
        tuple(filter(None, [name if gpu.get("index") is None else "", model, lanes, slices])),
        fault,
        active,
        f"{active}/{most}" if active < most and not silent else "",
    )


def _switched(gpu: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    links = mappings(gpu.get("nvlinks"))
    return [link for link in links if link.get("active") and link.get("remote_type") == "nvswitch"]


def _nic(nic: Mapping[str, Any]) -> Device:
    ports, name = mappings(nic.get("ports")), clean(nic.get("name"))
    up = [port for port in ports if port.get("state") == "ACTIVE"]
    fault = "" if up or not ports else "down" if len(ports) == 1 else "all ports down"
    if len(ports) > 1:
        details = [" ".join(_port(port)) + ("" if port in up or fault else ", down") for port in ports]
    else:
        details = [part for port in ports for part in _port(port)]
    return Device("nic", name, name, tuple(details), fault)


def _port(port: Mapping[str, Any]) -> list[str]:
    rate = clean(port.get("rate_gbps"))
    return [part for part in (clean(port.get("link_layer")), f"{rate} Gb/s" if rate else "") if part]


def _links(gpus: list[Mapping[str, Any]]) -> Iterable[Link]:
    """Direct links between two GPUs, as the first of them counts them."""
    for position, one in enumerate(gpus):
        for two in gpus[position + 1 :]:
            ends = [link for link in mappings(one.get("nvlinks")) if link.get("active")]
            count = len([link for link in ends if link.get("remote_pci_bus_id") == two["pci_bus_id"]])
            if count:
                yield Link(gpu_label(one), gpu_label(two), count)


def _numa_nodes(found: list[tuple[Device, Any, Any]], topology: Mapping[str, Mapping[str, Any]]) -> Iterable[Group]:
    """One group for each NUMA node that has a device."""
    for node in dict.fromkeys(numa for _device, numa, _cpus in found):
        here = [device for device, numa, _cpus in found if numa == node]
        cpus = next((clean(cpus) for _device, numa, cpus in found if numa == node and cpus), "")
        name = "NUMA node not known" if node is None else f"NUMA node {clean(node)}"
        yield Group("NUMA", name, f"CPUs {cpus}" if cpus else "", tuple(_nest(here, topology, _NESTED)))


def _nest(
    members: list[Device], topology: Mapping[str, Mapping[str, Any]], levels: tuple[str, ...]
) -> list[Device | Group]:
    """Devices that are joined by a code of the first level or a nearer one are a group; inside, the nearer levels."""
    if not levels:
        return list(members)
    result: list[Device | Group] = []
    for names in connected(dict.fromkeys(one.name for one in members), topology, lambda code: code in levels):
        part = [one for one in members if one.name in names]
        inner = _nest(part, topology, levels[1:])
        joined = len(part) > 1 and levels[0] in _codes(part, topology)
        result += [Group(levels[0], levels[0], "", tuple(inner))] if joined else inner
    return result


def _codes(members: list[Device], topology: Mapping[str, Mapping[str, Any]]) -> set[Any]:
    names = [device.name for device in members]
    return {topology.get(one, {}).get(two) for one in names for two in names if one != two}
