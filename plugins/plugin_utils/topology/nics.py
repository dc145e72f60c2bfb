# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the network adapters for training on a node: pure functions of gpu_node."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from ...module_utils.machine.nic_order import nic_ranks
from ...module_utils.machine.rails import is_of, place, rail_ports, training_class
from ...module_utils.machine.topology import active_ports, gpu_label, is_of_verbs

# From this version on NCCL selects the GID itself, and NCCL_IB_GID_INDEX "should not be set": NCCL, docs/userguide,
# troubleshooting/networking_troubleshooting.rst, and env.rst, NCCL_IB_ADDR_FAMILY and NCCL_IB_ROCE_VERSION_NUM (since 2.21).
SELECTS_GID = (2, 21)


def nearest_nics(gpu_node: Mapping) -> dict[str, list[str]]:
    """Return {GPU: adapters, best first}: a port like the node's rails', then distance, socket and PCI address."""
    return {name: list(near["nics"]) for name, near in gpu_node["affinity"].items()}


def rails(gpu_node: Mapping) -> tuple[list[Mapping], str]:
    """Return (adapters for training with those of their active ports that are for it, why these).

    Neither name nor index tells which adapters are rails: see module_utils.machine.rails.
    """
    pairs = rail_ports(gpu_node["gpus"], gpu_node["nics"], gpu_node["topology"])
    taken = [(nic["name"], port["port"]) for nic, port in pairs]
    chosen: list[Mapping] = []
    for nic in gpu_node["nics"]:
        if any(name == nic["name"] for name, dummy in taken):
            ports = [
                port for port in nic["ports"] if (nic["name"], port["port"]) in taken or port not in active_ports(nic)
            ]
            chosen.append({**nic, "ports": ports})
    return chosen, " and ".join(_why(gpu_node, taken))


def _why(gpu_node: Mapping, taken: list[tuple[str, int]]) -> list[str]:
    """Return the properties that tell the ports of the rails from the others that are up."""
    wanted = training_class(gpu_node["gpus"], gpu_node["nics"], gpu_node["topology"])
    up = [(nic, port) for nic in gpu_node["nics"] for port in active_ports(nic)]
    left = [port for nic, port in up if (nic["name"], port["port"]) not in taken]
    other = [port for port in left if not is_of(port, wanted)]
    layer, rate = wanted or (None, None)
    rates = [(port["rate_gbps"] or rate or 0) - (rate or 0) for port in other]
    words = ["share a PCIe switch with a GPU"] if len(other) < len(left) or any(one > 0 for one in rates) else []
    if any(one > 0 for one in rates):
        words.append("carry more together than faster ones elsewhere")
    elif any(one < 0 for one in rates):
        words.append(f"have the highest rate, {rate} Gbit/s")
    if any(port["link_layer"] != layer and not one for port, one in zip(other, rates, strict=True)):
        words.append(f"have link layer {layer}")
    return words


def nccl_environment(gpu_node: Mapping, nccl_version: str | None = None) -> dict[str, dict[str, str]]:
    """Return {``variables``, ``reasons``}: a variable only where NCCL's own choice would be wrong or ambiguous.

    It holds for this node only: the right list differs from node to node.
    """
    adapters, why = hca_choice(gpu_node)
    verbs = for_verbs(gpu_node)
    variables = {"NCCL_IB_HCA": adapters} if adapters else {}
    reasons = {"NCCL_IB_HCA": f"Set: {why}." if adapters else _hca_unset(verbs, gpu_node)}
    index, reasons["NCCL_IB_GID_INDEX"] = _gid_index(rails(verbs)[0], nccl_version)
    if index is not None:
        variables["NCCL_IB_GID_INDEX"] = str(index)
    return {"variables": variables, "reasons": reasons}


def for_verbs(gpu_node: Mapping) -> dict[str, Any]:
    """Return the node without the ports that NCCL itself does not use: those of EFA are for a plugin."""
    nics = [{**nic, "ports": [port for port in nic["ports"] if is_of_verbs(port)]} for nic in gpu_node["nics"]]
    kept = [nic for nic, whole in zip(nics, gpu_node["nics"], strict=True) if nic["ports"] or not whole["ports"]]
    return {**gpu_node, "nics": kept}


def hca_choice(gpu_node: Mapping) -> tuple[str, str]:
    """Return (value of NCCL_IB_HCA, why these adapters); both empty where NCCL decides as well itself."""
    gpu_node = for_verbs(gpu_node)
    chosen, why = rails(gpu_node)
    if not why:
        return "", ""
    names = [name for nic in chosen for name in _hca(nic, gpu_node["nics"])]
    left = [nic["name"] for nic in gpu_node["nics"] if active_ports(nic) and nic["name"] not in names]
    more = f"would also take {', '.join(left)}" if left else "would also take other ports"
    # Without "=" mlx5_1 would also match mlx5_11.
    return "=" + ",".join(names), f"these adapters {why}; NCCL itself {more}"


def _hca(chosen: Mapping, nics: Iterable[Mapping]) -> list[str]:
    """Return the names by which NCCL knows an adapter: by its ports where one of them is up and not wanted."""
    whole = next(nic for nic in nics if nic["name"] == chosen["name"])
    if active_ports(whole) == active_ports(chosen):
        return [chosen["name"]]
    return [f"{chosen['name']}:{port['port']}" for port in active_ports(chosen)]


def _hca_unset(gpu_node: Mapping, whole: Mapping) -> str:
    """Return the reason for an unset NCCL_IB_HCA, and unknowns of the adapters. whole: the node with the ports of all link layers."""
    nics, gpus = gpu_node["nics"], gpu_node["gpus"]
    others = [nic["name"] for nic in whole["nics"] if any(not is_of_verbs(port) for port in nic["ports"])]
    foreign = f"none of {', '.join(others)}, whose link layer is neither InfiniBand nor Ethernet" if others else ""
    usable = [nic for nic in nics if active_ports(nic)]
    unknown = [nic["name"] for nic in nics if not nic["ports"] or any(not port["state"] for port in nic["ports"])]
    far = [nic["name"] for nic in usable if place(gpus, nic, gpu_node["topology"]) is None]
    gaps = [f"it is not known whether a port of {', '.join(unknown)} is up"] if unknown else []
    gaps += [f"how far {', '.join(far)} is from every GPU was not measured"] if far else []
    if not nics and foreign:
        return f"Not set: NCCL itself takes {foreign}, and uses TCP unless a plugin brings a network."
    gaps += [f"it takes {foreign}"] if foreign else []
    if not usable:
        lacking = (
            "no adapter with a port that is up is known, so NCCL's own choice is TCP, unless a plugin brings a network"
        )
        return f"Not set: {'; '.join(gaps) or lacking}."
    taken = f"NCCL itself takes every adapter with a port that is up, and nothing known speaks against any of the {len(usable)}"
    return f"Not set: {'; '.join([taken, *gaps])}."


def _gid_index(chosen: list[Mapping], nccl_version: str | None) -> tuple[int | None, str]:
    ports = [port for nic in chosen for port in active_ports(nic) if port["link_layer"] == "Ethernet"]
    indexes = {port["rocev2_gid_index"] for port in ports}
    version = re.match(r"(\d+)\.(\d+)", nccl_version or "")
    if not ports:
        return None, "Not set: no port for training is known to be RoCE."
    if not version:
        return (
            None,
            "Not set: the version of NCCL is not given, and from 2.21 on NCCL selects the GID itself and must not be given one.",
        )
    if tuple(map(int, version.groups())) >= SELECTS_GID:
        return None, f"Not set: NCCL {nccl_version} selects the GID itself and must not be given one."
    if None in indexes:
        return None, "Not set: an adapter has no routable RoCE v2 GID; give its interface an IP address."
    if len(indexes) > 1:
        return None, f"Not set: the adapters have their RoCE v2 GID at different indexes ({sorted(indexes)})."
    return indexes.pop(), f"Set: the RoCE v2 GID is at this index on every adapter; NCCL {nccl_version} takes index 0."


def rank_binding(gpu_node: Mapping) -> list[dict[str, Any]]:
    """Return each local rank's ``gpu``, ``cpus`` (its share of the nearest), ``numa_node`` and ``nic`` (shared fairly)."""
    gpus = [gpu for gpu in gpu_node["gpus"] if gpu["index"] is not None]
    chosen = rails(gpu_node)[0]
    used: Counter = Counter()
    bindings = []
    near = [gpu["cpu_affinity"] and cpu_numbers(gpu["cpu_affinity"]) for gpu in gpus]
    for rank, gpu in enumerate(gpus):
        row = gpu_node["topology"][gpu_label(gpu)]
        ranks = nic_ranks(gpu, row, chosen, gpu_node.get("numa_distances"))
        order = [name for name in gpu_node["affinity"][gpu_label(gpu)]["nics"] if name in ranks]
        best = [name for name in order if (ranks[name], row[name]) == (ranks[order[0]], row[order[0]])]
        nic = min(best, key=lambda name: (used[name], order.index(name)), default=None)
        used.update([nic])
        peers = [other for other, cpus in enumerate(near) if cpus == near[rank]]
        bindings.append({
            "local_rank": rank,
            "gpu": gpu_label(gpu),
            "cpus": share(gpu["cpu_affinity"], peers.index(rank), len(peers)),
            "numa_node": gpu["numa_node"],
            "nic": nic,
        })  # fmt: skip
    return bindings


def share(cpus: str | None, number: int, of: int) -> str | None:
    """Return the number-th of equal shares of a CPU list, in any notation of cpuset(7) and taskset(1).

    Each run of CPUs at one distance is divided, so that siblings and neighbours stay together, and what is left over is dealt out in
    turn: no share has more than one CPU more than another. Where there are fewer CPUs than shares, neighbouring shares have one in
    common.

    >>> share("0-15,64-79", 1, 2), share("0,2,4,6", 1, 2)
    ('8-15,72-79', '4,6')
    """
    if cpus is None:
        return None
    found = cpu_numbers(cpus)
    if len(found) < of:
        return str(found[number * len(found) // of])
    own: list[int] = []
    dealt = 0
    for run in _runs(found):
        each, left = divmod(len(run), of)
        sizes = [each + ((one - dealt) % of < left) for one in range(of)]
        begin = sum(sizes[:number])
        own += run[begin : begin + sizes[number]]
        dealt += left
    return ",".join(_spans(own))


def cpu_numbers(cpus: str) -> list[int]:
    """Return the CPUs of a list: ``0-3,8``, with a stride ``0-14:2``, or with the first of each group ``0-31:2/8`` (Linux, kernel-parameters).

    Blanks may stand in the place of commas, and a mask ``0xff0f`` in that of a list.
    """
    found: set[int] = set()
    for part in cpus.replace(",", " ").split():
        if part.startswith("0x"):
            found |= {cpu for cpu, bit in enumerate(reversed(f"{int(part, 16):b}")) if bit == "1"}
            continue
        ends, _colon, step = part.partition(":")
        first, _dash, last = ends.partition("-")
        used, slash, group = step.partition("/")
        span = range(int(first), int(last or first) + 1)
        if slash:
            found |= {cpu for cpu in span if (cpu - span.start) % int(group) < int(used)}
        else:
            found |= set(span[:: int(used or 1)])
    return sorted(found)


def _runs(numbers: list[int]) -> list[list[int]]:
    """Return sorted numbers as runs without a gap wider than the usual one."""
    gaps = Counter(after - before for before, after in pairwise(numbers))
    usual = min((gap for gap, count in gaps.items() if count == max(gaps.values())), default=1)
    runs: list[list[int]] = []
    for one in numbers:
        if runs and one - runs[-1][-1] <= usual:
            runs[-1].append(one)
        else:
            runs.append([one])
    return runs


def _spans(numbers: list[int]) -> Iterator[str]:
    """Yield sorted numbers as what is next to each other: ``0-3``, ``8``."""
    begin = 0
    for index in range(1, len(numbers) + 1):
        if index == len(numbers) or numbers[index] != numbers[index - 1] + 1:
            first, last = numbers[begin], numbers[index - 1]
            yield str(first) if first == last else f"{first}-{last}"
            begin = index


def crowded(bindings: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return {CPU: how many ranks have only this one} of what rank_binding gives, where there are fewer CPUs than ranks."""
    ranks = Counter(one["cpus"] for one in bindings if one["cpus"] is not None)
    return {cpus: count for cpus, count in ranks.items() if count > 1}
