# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The measured machine as it is drawn: devices nested by closeness, their NVLinks, the matrix. From gpu_node alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..documents.gpu_node import Gpu, GpuNode, Nic, NvLink, PcieLink, Port
from ..problems.phrases import plural
from ..topology.islands import connected, linked

# What each code of "nvidia-smi topo -m" says of two devices, nearest first.
CODES = {
    "PIX": "below one PCIe switch",
    "PXB": "over several PCIe switches",
    "PHB": "over one PCIe host bridge",
    "NODE": "in one NUMA node",
    "SYS": "between NUMA nodes",
}
_NESTED = ("PHB", "PXB", "PIX")
Topology = Mapping[str, Mapping[str, str | None]]


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
        """Return the codes that occur, with their meaning."""
        found = {code for row in self.matrix for code in row}
        return {code: meaning for code, meaning in CODES.items() if code in found}

    @property
    def words(self) -> str:
        """Return a description of the picture, for readers who cannot see it."""
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
    """Return all devices of a group, at any depth."""
    return [item] if isinstance(item, Device) else [one for member in item.members for one in devices(member)]


def build(gpu_node: GpuNode, faults: Mapping[str, Fault]) -> Machine | None:
    """Build the machine; None where no GPU was measured.

    faults: {GPU: its worst finding}, as health.faults gives them.
    """
    gpus, topology = measured_gpus(gpu_node), gpu_node.topology
    if not gpus:
        return None
    found = [_Placed(_gpu(gpu, gpus, faults), gpu.numa_node, gpu.cpu_affinity) for gpu in gpus]
    found += [_Placed(_nic(nic), nic.numa_node, None) for nic in gpu_node.nics]
    names = tuple(one.device.name for one in found)
    switches = gpu_node.nvswitches.count
    return Machine(
        groups=tuple(_numa_nodes(found, topology)),
        links=tuple(_links(gpus)),
        switches=switches,
        fabric=bool(switches) or any(_switched(gpu) for gpu in gpus),
        islands=tuple(tuple(island) for island in linked([gpu.label for gpu in gpus], topology) if len(island) > 1),
        names=names,
        matrix=tuple(tuple(topology.get(one, {}).get(two) or "?" for two in names) for one in names),
        problems=gpu_node.problems,
    )


@dataclass(frozen=True)
class _Placed:
    """A device and where it is."""

    device: Device
    numa_node: int | None
    cpus: str | None


def measured_gpus(gpu_node: GpuNode) -> list[Gpu]:
    """Return the GPUs that have an address."""
    return [gpu for gpu in gpu_node.gpus if gpu.pci_bus_id is not None]


def _gpu(gpu: Gpu, gpus: list[Gpu], faults: Mapping[str, Fault]) -> Device:
    name, known = gpu.label, faults.get(gpu.label)
    narrow = _narrow(gpu.pcie)
    silent = "nvml" not in gpu.seen_by
    told = narrow and known is not None and known.check == "pcie_width"
    slices = plural(len(gpu.mig.instances), "MIG instance") if gpu.mig.instances else ""
    fault = "does not answer" if silent else known.text if known else "narrow PCIe link" if narrow else ""
    active, most = len(_switched(gpu)), max(len(_switched(one)) for one in gpus)
    unnamed = gpu.index is None
    return Device(
        "gpu",
        name,
        "GPU" if unnamed else name,
        tuple(filter(None, [name if unnamed else "", _model(gpu), "" if told else _lanes(gpu.pcie), slices])),
        fault,
        active,
        f"{active}/{most}" if active < most and not silent else "",
    )


def _model(gpu: Gpu) -> str:
    model = gpu.name or ""
    for maker in ("NVIDIA ", "GeForce ", "Tesla "):
        model = model.removeprefix(maker)
    return model


def _narrow(link: PcieLink) -> bool:
    return bool(link.width and link.max_width and link.width < link.max_width)


def _lanes(link: PcieLink) -> str:
    return f"PCIe x{link.width}" + (f" of x{link.max_width}" if _narrow(link) else "") if link.width else ""


def _switched(gpu: Gpu) -> list[NvLink]:
    return [link for link in gpu.nvlinks if link.active and link.remote_type == "nvswitch"]


def _nic(nic: Nic) -> Device:
    up = [port for port in nic.ports if port.state == "ACTIVE"]
    fault = "" if up or not nic.ports else "down" if len(nic.ports) == 1 else "all ports down"
    if len(nic.ports) > 1:
        details = [" ".join(_port(port)) + ("" if port in up or fault else ", down") for port in nic.ports]
    else:
        details = [part for port in nic.ports for part in _port(port)]
    return Device("nic", nic.name, nic.name, tuple(details), fault)


def _port(port: Port) -> list[str]:
    rate = "" if port.rate_gbps is None else f"{port.rate_gbps:g} Gb/s"
    return [part for part in (port.link_layer, rate) if part]


def _links(gpus: list[Gpu]) -> Iterable[Link]:
    """Direct links between two GPUs, as the first of them counts them."""
    for position, one in enumerate(gpus):
        for two in gpus[position + 1 :]:
            count = sum(link.active and link.remote_pci_bus_id == two.pci_bus_id for link in one.nvlinks)
            if count and one.label != two.label:  # a node may say a GPU twice
                yield Link(one.label, two.label, count)


def _numa_nodes(found: list[_Placed], topology: Topology) -> Iterable[Group]:
    """One group for each NUMA node that has a device."""
    for node in dict.fromkeys(one.numa_node for one in found):
        here = [one for one in found if one.numa_node == node]
        cpus = next((one.cpus for one in here if one.cpus), "")
        name = "NUMA node not known" if node is None else f"NUMA node {node}"
        members = _nest([one.device for one in here], topology, _NESTED)
        yield Group("NUMA", name, f"CPUs {cpus}" if cpus else "", tuple(members))


def _nest(members: list[Device], topology: Topology, levels: tuple[str, ...]) -> list[Device | Group]:
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


def _codes(members: list[Device], topology: Topology) -> set[str | None]:
    names = [device.name for device in members]
    return {topology.get(one, {}).get(two) for one in names for two in names if one != two}
