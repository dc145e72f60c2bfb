# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge how GPUs reach each other and adapters over PCIe: for each pair a verdict with its reasons. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....module_utils.machine import pci_config
from ....module_utils.machine.topology import bridges_between, gpu_label
from ....module_utils.settings import pcie_facts as pcie
from ...documents.pcie import Device, PcieNode, Port
from ...problems.problem import Problem

# Most hindering first: a verdict is that of the first reason, direct without any.
VERDICTS = {
    "pcie_translates": "translated",
    "pcie_root_complex": "root_complex",
    "pcie_redirects": "redirected",
    "pcie_unreadable": "unknown",
    "pcie_hidden": "unknown",
}
_between: Callable[[Sequence[str], Sequence[str]], Sequence[str] | None] = bridges_between


@dataclass(frozen=True)
class Pair:
    """Two devices by their labels, the verdict and why."""

    one: str
    other: str
    verdict: str
    reasons: tuple[Problem, ...] = ()
    bridges: tuple[str, ...] = ()


def labels(node: PcieNode, gpu_node: Mapping[str, Any]) -> dict[str, str]:
    """Return {address: what people call the device}."""
    known = {gpu["pci_bus_id"]: gpu_label(gpu) for gpu in gpu_node.get("gpus") or ()}
    return {one.address: one.name or known.get(one.address, one.address) for one in node.devices}


def judge(node: PcieNode, gpu_node: Mapping[str, Any]) -> tuple[Pair, ...]:
    """Return every pair of GPUs that NVLink does not join, and every GPU with each adapter."""
    return tuple(_pairs(node, labels(node, gpu_node), gpu_node.get("topology") or {}))


def _pairs(node: PcieNode, names: Mapping[str, str], topology: Mapping[str, Any]) -> Iterator[Pair]:
    gpus = [one for one in node.devices if one.kind == "gpu"]
    nics = [one for one in node.devices if one.kind == "nic"]
    for number, gpu in enumerate(gpus):
        for other in (*gpus[number + 1 :], *nics):
            one, two = names[gpu.address], names[other.address]
            code = (topology.get(one) or {}).get(two) or ""
            # Behind NVLink only pairs with an adapter use PCIe.
            if not code.startswith("NV"):
                yield _judged(node, gpu, other, one, two)


def _judged(node: PcieNode, gpu: Device, other: Device, one: str, two: str) -> Pair:
    way = _between(gpu.path, other.path)
    found = [*_translation(gpu, other), *_way(node, gpu, other, way)]
    found.sort(key=lambda reason: list(VERDICTS).index(reason.code))
    verdict = VERDICTS[found[0].code] if found else "direct"
    return Pair(one, two, verdict, tuple(found), tuple(way or ()))


def _translation(gpu: Device, other: Device) -> Iterator[Problem]:
    for device in (gpu, other):
        if device.iommu_type in pcie.TRANSLATING:
            yield Problem("pcie_translates", device.address, {"type": device.iommu_type})


def _way(node: PcieNode, gpu: Device, other: Device, way: Sequence[str] | None) -> Iterator[Problem]:
    """Yield the obstacles in the way. Beyond the root complex no bridge's redirection matters: all goes up anyway."""
    if way is None:
        hidden = [device.address for device in (gpu, other) if not device.path[1:-1]]
        if hidden:
            yield Problem("pcie_hidden", hidden[0], {})
        else:
            yield Problem(
                "pcie_root_complex", gpu.path[0], {"same": gpu.path[0] == other.path[0], "other": other.path[0]}
            )
        return
    for address in way:
        bridge = node.bridges.get(address, Port())
        if not bridge.readable:
            yield Problem("pcie_unreadable", address, {})
        elif (bridge.acs or 0) & pci_config.ACS_REDIRECT:
            yield Problem("pcie_redirects", address, {"bits": acs_text(bridge.acs)})


def acs_text(control: int | None) -> str:
    """Return the names of those bits that redirect; empty where none does."""
    return ", ".join(pci_config.acs_names((control or 0) & pci_config.ACS_REDIRECT))


def narrow(node: PcieNode) -> Iterator[tuple[str, int, int]]:
    """Yield (address, width, what both ends could have) of links that are narrower than that.

    The speed is not a sign: idle GPUs, and the bridges above them, lower it.
    """
    ports: dict[str, Port] = {**node.bridges, **{one.address: one for one in node.devices}}
    seen = set()
    for device in node.devices:
        for above, below in zip(device.path[1:-1], device.path[2:], strict=True):
            if below in seen:
                continue
            seen.add(below)
            ends = [ports[address].link for address in (above, below) if address in ports]
            widths = [link.max_width for link in ends if link and link.max_width]
            now = ends[-1].width if len(widths) == 2 and ends[-1] else None
            if now and now < min(widths):
                yield below, now, min(widths)


def slowed(node: PcieNode) -> Iterator[tuple[str, int, int]]:
    """Yield (address, generation, what both ends could have) of adapters whose link is slower: they do not idle."""
    for device in node.devices:
        above = node.bridges.get(device.path[-2]) if len(device.path) > 2 else None
        ends = [end.link.max_generation for end in (device, above) if end and end.link and end.link.max_generation]
        now = device.link.generation if device.link else None
        if device.kind == "nic" and len(ends) == 2 and now and now < min(ends):
            yield device.address, now, min(ends)
