# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The measured speed of an all-reduce next to what the links of the nodes allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...module_utils.machine.topology import active_ports
from ..topology.islands import expected_bus_bandwidth, is_one_island
from .check import Check, check, compared

# Ours, far below what a run over NVLink reaches (about 80 %, see expected_bus_bandwidth). By the tables of topology/islands.py, PCIe, which
# NCCL falls back to, has 14 % of the NVLinks of an H100 and 11 % of those of an A100; of cards with a bridge it may have more than this.
LOWEST_SHARE = 0.25
SLOW = (
    "NCCL does not use the NVLinks, or one is slow",
    "set NCCL_DEBUG=INFO for a run, whose output then names the transport",
)


def checks(metrics: Mapping, gpu_nodes: Sequence[Mapping]) -> list[Check]:
    """Judge the speed where NVLink alone decides it, else tell it next to the limit.

    metrics: what allreduce_check.py wrote; gpu_nodes: the facts gpu_node of the nodes that took part
    """
    measured = {entry["bytes"]: entry["busbw_gbytes_per_second"] for entry in metrics.get("bandwidth") or []}
    if not measured:
        return []
    peak = _peak(gpu_nodes) if metrics.get("backend") == "nccl" else None
    told = ", ".join(f"{speed:.2f} GB/s at {size >> 20} MiB" for size, speed in measured.items())
    if peak is None:
        reason = "measured, but the limit of the links is not known"
        return [check("all_reduce_bandwidth", "collectives", "", told, "skipped", reason)]
    share = max(measured.values()) / peak
    told = f"{told} ({share:.0%} of the limit)"
    if len(gpu_nodes) > 1 or not is_one_island(gpu_nodes[0]):
        kind = "the adapters' rate" if len(gpu_nodes) > 1 else "PCIe"
        reason = f"not judged: how much of {kind} a run reaches depends on the path through the hosts"
        return [check("all_reduce_bandwidth", "collectives", f"at most {peak:.1f} GB/s", told, "skipped", reason)]
    passed = share >= LOWEST_SHARE
    expected = f"{LOWEST_SHARE:.0%} of {peak:.1f} GB/s or more"
    return [compared("all_reduce_bandwidth", "collectives", expected, told, passed, *SLOW)]


def _peak(gpu_nodes: Sequence[Mapping]) -> float | None:
    """Return the limit in GB/s: of the links in one node; between nodes, also of the active ports of each node's adapters."""
    if not all(one.get("gpus") for one in gpu_nodes):
        return None
    limits = [expected_bus_bandwidth(one) for one in gpu_nodes if len(one["gpus"]) > 1]
    if len(gpu_nodes) > 1:
        limits += [_adapters(one.get("nics") or ()) for one in gpu_nodes]
    known = [limit for limit in limits if limit]
    return min(known) if known and len(known) == len(limits) else None


def _adapters(nics: Iterable[Mapping]) -> float:
    return sum(port["rate_gbps"] or 0.0 for nic in nics for port in active_ports(nic)) / 8
