# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine whose "nvidia-smi topo -m" is a given one: its PCI tree is made up so that the distances are those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, count

from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology.islands import connected
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology.recorded import parse_topology
from ansible_collections.allreduce.gpu.tests.lab.nvml.machine import Gpu, Machine, Model, Nic

MODEL = Model("Recorded GPU", 0x20B0, 7, "8.0", 40960, (400, 100, 400), nvlink_version=4, nvlinks=18)
NEAR = ("PIX", "PXB", "PHB", "NODE")


def rebuild(name: str, text: str) -> Machine:
    """Each host bridge is a PCI domain of its own. A pair that is not in the text lies anywhere."""
    parsed = parse_topology(text)
    topology = parsed["topology"]
    gpus, nics, numa = [], [], {}
    domains = count()
    for members in connected(topology, topology, lambda code: code in NEAR):
        node = numa_node(members, parsed["gpus"], numa)
        numa[node] = next(filter(None, (parsed["gpus"].get(member, {}).get("cpu_affinity") for member in members)), "0")
        for below in connected(members, topology, lambda code: code in NEAR[:3]):
            for device, path in host_bridge(f"{next(domains):04x}", below, topology):
                if device in parsed["gpus"]:
                    gpus.append((int(device[3:]), path, node))
                else:
                    nics.append(Nic(device, path, node))
    switch = ("pciffff:00", "ffff:00:01.0", "ffff:01:00.0")
    links = nvlinks(parsed["gpus"], topology, {f"GPU{number}": path[-1] for number, path, dummy in gpus}, switch[-1])
    # Behind switches a GPU has as many links as the recording shows of the best one.
    switched = any(kind == "nvswitch" for some in links.values() for kind, dummy in some)
    model = replace(MODEL, nvlinks=max(map(len, links.values()))) if switched else MODEL
    built = tuple(Gpu(model, path, node, number, links[f"GPU{number}"]) for number, path, node in sorted(gpus))
    switches = (switch,) if switched else ()
    return Machine(name, built, tuple(nics), switches, numa)


def numa_node(members: list[str], gpus: Mapping, taken: Mapping) -> int:
    """Return the number that the text says, unless devices elsewhere are at that node already, as virtual machines claim."""
    said = [gpus[member]["numa_affinity"] for member in members if member in gpus]
    first = next((int(text.partition(",")[0].partition("-")[0]) for text in said if text), None)
    return first if first is not None and first not in taken else next(n for n in count(1000) if n not in taken)


def host_bridge(domain: str, members: list[str], topology: Mapping) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(device, its path): alone below a root port, below one switch (PIX), or below a switch of a switch (PXB)."""
    buses = count(1)

    def address(slot: int = 0, bus: int | None = None) -> str:
        return f"{domain}:{next(buses) if bus is None else bus:02x}:{slot:02x}.0"

    for port, group in enumerate(connected(members, topology, lambda code: code in NEAR[:2])):
        root = (f"pci{domain}:00", address(port + 1, 0))
        switches = connected(group, topology, lambda code: code == "PIX")
        above = (*root, address()) if len(switches) > 1 else root
        for slot, switch in enumerate(switches):
            here = (*above, address(slot)) if len(switches) > 1 else above
            here = (*here, address()) if len(group) > 1 else here
            for number, device in enumerate(switch):
                yield device, (*here, address(number), address()) if len(group) > 1 else (*here, address())


def nvlinks(gpus: Mapping, topology: Mapping, addresses: Mapping, switch: str) -> dict[str, tuple]:
    """Links between pairs where a GPU has as many as they need, else all of them to a switch."""
    counts = {
        (one, two): int(topology[one][two][2:])
        for one, two in combinations(gpus, 2)
        if str(topology[one][two]).startswith("NV")
    }
    links: dict[str, list] = {gpu: [] for gpu in gpus}
    for (one, two), number in counts.items():
        links[one] += [("gpu", addresses[two])] * number
        links[two] += [("gpu", addresses[one])] * number
    if any(len(some) > MODEL.nvlinks for some in links.values()):
        most = {gpu: max((n for pair, n in counts.items() if gpu in pair), default=0) for gpu in gpus}
        return {gpu: (("nvswitch", switch),) * number for gpu, number in most.items()}
    return {gpu: tuple(some) for gpu, some in links.items()}
