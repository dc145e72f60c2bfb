# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report PCIe between GPUs and adapters without a verdict: only requested settings can be missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..documents.parsing import parse
from ..documents.pcie import PcieNode
from ..subjects.pcie.judge import Pair, judge, labels, narrow, slowed
from ..subjects.pcie.text import VERDICTS, sentence
from .check import Check, check, joined

UNREMARKABLE = ("direct", "root_complex")
# What can be done, where it is wanted: none of it is a fault.
PATHS = "set pcie_acs_redirect to clear, unless devices are passed to guests"
LINKS = "look at the slot and the riser, and at the slot's settings in the firmware's setup"
IOMMU = "boot the kernel with iommu=pt"
READ_REQUESTS = "set pcie_max_read_request, which sets them alike"


def checks(fact: Mapping[str, Any] | None, gpu_node: Mapping[str, Any]) -> Iterator[Check]:
    """Yield the checks of a node that PCIe was measured of and that has a GPU; raise DocumentError for another shape."""
    node = parse(PcieNode, fact or {}, "gpu_pcie")
    if not any(one.kind == "gpu" for one in node.devices):
        return
    yield _paths(judge(node, gpu_node))
    yield _links(node, labels(node, gpu_node))
    yield _iommu(node)
    yield from _read_requests(node)


def _told(name: str, expected: str, measured: str, reason: str, fix: str) -> Check:
    """Return a check that passed, or without a judgement where there is something to say."""
    return check(name, "health", expected, measured, *(("skipped", reason, fix) if reason else ("passed",)))


def _paths(pairs: Iterable[Pair]) -> Check:
    counts = Counter(pair.verdict for pair in pairs)
    measured = ", ".join(f"{counts[verdict]} {VERDICTS[verdict]}" for verdict in VERDICTS if counts[verdict])
    causes = [sentence(why) for pair in pairs if pair.verdict not in UNREMARKABLE for why in pair.reasons]
    return _told("pcie_paths", "nothing in the way below a switch", measured or "no pairs", joined(causes), PATHS)


def _links(node: PcieNode, names: Mapping[str, str]) -> Check:
    told = [f"{names.get(address, address)} has {now} of {able} lanes" for address, now, able in narrow(node)]
    told += [f"{names.get(address, address)} runs at generation {now} of {able}" for address, now, able in slowed(node)]
    return _told(
        "pcie_links",
        "what both ends can do",
        f"{len(told)} below that" if told else "what both ends can do",
        joined(told),
        LINKS,
    )


def _iommu(node: PcieNode) -> Check:
    counts = Counter(one.iommu_type or ("unknown" if one.iommu_group else "none") for one in node.devices)
    measured = ", ".join(f"{kind} for {count} devices" for kind, count in sorted(counts.items()))
    translated = sorted(counts.keys() - {"identity", "none"})
    reason = "traffic between devices goes through the IOMMU" if translated else ""
    return _told("pcie_iommu", "no translation", measured, reason, IOMMU)


def _read_requests(node: PcieNode) -> Iterator[Check]:
    """Tell adapters apart whose read requests differ in size: one of them has not got what the others have."""
    sizes: dict[int, list[str]] = {}
    for one in node.devices:
        if one.kind == "nic" and one.read_request:
            sizes.setdefault(one.read_request, []).append(one.name or one.address)
    if sizes:
        told = ", ".join(f"{size} bytes on {', '.join(names)}" for size, names in sorted(sizes.items()))
        reason = "adapters of one node differ" if len(sizes) > 1 else ""
        yield _told("pcie_read_requests", "one size", told, reason, READ_REQUESTS)
