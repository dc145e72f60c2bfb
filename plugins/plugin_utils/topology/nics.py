# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which network adapters training should use on a node: pure functions of gpu_node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ...module_utils.machine.topology import gpu_label

NEAR = ("PIX", "PXB")


def nearest_nics(gpu_node: Mapping) -> dict[str, list[str]]:
    """Return {GPU: adapters, best first}: by distance, then a port that is up, its rate, and the name."""
    return {name: list(near["nics"]) for name, near in gpu_node["affinity"].items()}


def active_ports(nic: Mapping) -> list[Mapping]:
    return [port for port in nic["ports"] if port["state"] == "ACTIVE"]


def rails(gpu_node: Mapping) -> tuple[list[Mapping], str]:
    """Return (adapters for training, why these).

    Neither name nor index tells which adapters are rails. A port must be up. Adapters on a GPU's PCIe switch are
    rails where there are any; elsewhere, or where a distance is unknown, nothing is said by distance. Of those, the
    fastest of one link layer.
    """
    usable = [nic for nic in gpu_node["nics"] if active_ports(nic)]
    near = [nic for nic in usable if _distances(gpu_node, nic) & set(NEAR)]
    if any(None in _distances(gpu_node, nic) for nic in usable if nic not in near):
        near = []
    chosen = near or usable
    why = ["share a PCIe switch with a GPU"] if near and len(near) < len(usable) else []
    layers = Counter(port["link_layer"] for nic in chosen for port in active_ports(nic))
    if len(layers) > 1:
        best = max(layers, key=lambda layer: (_rate(chosen, layer), layers[layer], layer == "InfiniBand"))
        chosen = [_with_ports(nic, "link_layer", best) for nic in chosen if best in _layers(nic)]
        why.append(f"have the fastest link layer, {best}")
    top = max((_rate([nic]) for nic in chosen), default=0)
    if any(port["rate_gbps"] != top for nic in chosen for port in active_ports(nic) if port["rate_gbps"]):
        chosen = [_with_ports(nic, "rate_gbps", top) for nic in chosen if _rate([nic]) == top]
        why.append(f"have the highest rate, {top} Gbit/s")
    return chosen, " and ".join(why)


def _with_ports(nic: Mapping, key: str, value: Any) -> Mapping:
    """Return the adapter without those of its active ports whose ``key`` is another one."""
    return {**nic, "ports": [port for port in nic["ports"] if port[key] == value or port not in active_ports(nic)]}


def _distances(gpu_node: Mapping, nic: Mapping) -> set[str | None]:
    return {gpu_node["topology"].get(gpu_label(gpu), {}).get(nic["name"]) for gpu in gpu_node["gpus"]}


def _layers(nic: Mapping) -> set[str]:
    return {port["link_layer"] for port in active_ports(nic)}


def _rate(nics: Iterable[Mapping], layer: str | None = None) -> float:
    ports = [port for nic in nics for port in active_ports(nic) if layer in (None, port["link_layer"])]
    return max((port["rate_gbps"] or 0 for port in ports), default=0)


def nccl_environment(gpu_node: Mapping) -> dict[str, dict[str, str]]:
    """Return {``variables``, ``reasons``}: a variable only where NCCL's own choice would be wrong or ambiguous.

    It holds for this node only: the right list differs from node to node.
    """
    adapters, why = hca_choice(gpu_node)
    variables = {"NCCL_IB_HCA": adapters} if adapters else {}
    reasons = {"NCCL_IB_HCA": f"Set: {why}." if adapters else _hca_unset(gpu_node["nics"])}
    index, reasons["NCCL_IB_GID_INDEX"] = _gid_index(rails(gpu_node)[0])
    if index is not None:
        variables["NCCL_IB_GID_INDEX"] = str(index)
    return {"variables": variables, "reasons": reasons}


def hca_choice(gpu_node: Mapping) -> tuple[str, str]:
    """Return (value of NCCL_IB_HCA, why these adapters); both empty where NCCL decides as well itself."""
    chosen, why = rails(gpu_node)
    if not why:
        return "", ""
    names = [name for nic in chosen for name in _hca(nic, gpu_node["nics"])]
    left = [nic["name"] for nic in gpu_node["nics"] if active_ports(nic) and nic["name"] not in names]
    more = f"would also take {', '.join(left)}" if left else "would also take other ports"
    # Without "=" mlx5_1 would also match mlx5_11.
    return "=" + ",".join(names), f"these adapters {why}; NCCL itself {more}"


def _hca(chosen: Mapping, nics: Iterable[Mapping]) -> list[str]:
    """Return how NCCL names an adapter: by its ports where one of them is up and not wanted."""
    whole = next(nic for nic in nics if nic["name"] == chosen["name"])
    if active_ports(whole) == active_ports(chosen):
        return [chosen["name"]]
    return [f"{chosen['name']}:{port['port']}" for port in active_ports(chosen)]


def _hca_unset(nics: list[Mapping]) -> str:
    usable = [nic["name"] for nic in nics if active_ports(nic)]
    if not usable:
        unknown = [nic["name"] for nic in nics if not nic["ports"] or any(not port["state"] for port in nic["ports"])]
        if unknown:
            return f"Not set: it is not known whether a port of {', '.join(unknown)} is up."
        return "Not set: no adapter has a port that is up, so NCCL takes TCP."
    return f"Not set: NCCL itself takes every adapter with a port that is up, and nothing speaks against one of {len(usable)}."


def _gid_index(chosen: list[Mapping]) -> tuple[int | None, str]:
    ports = [port for nic in chosen for port in active_ports(nic) if port["link_layer"] == "Ethernet"]
    indexes = {port["rocev2_gid_index"] for port in ports}
    if not ports:
        return None, "Not set: no RoCE adapter is used."
    if None in indexes:
        return None, "Not set: an adapter has no routable RoCE v2 GID; give its interface an IP address."
    if len(indexes) > 1:
        return (
            None,
            f"Not set: the adapters have their RoCE v2 GID at different indexes ({sorted(indexes)}); NCCL 2.21 and later finds each.",
        )
    return indexes.pop(), "Set: the RoCE v2 GID is at this index on every adapter; NCCL before 2.21 takes index 0."


def rank_binding(gpu_node: Mapping) -> list[dict[str, Any]]:
    """Return each local rank's ``gpu``, ``cpus`` (its share of the nearest), ``numa_node`` and ``nic`` (shared fairly)."""
    gpus = [gpu for gpu in gpu_node["gpus"] if gpu["index"] is not None]
    names = {nic["name"] for nic in rails(gpu_node)[0]}
    used: Counter = Counter()
    bindings = []
    for rank, gpu in enumerate(gpus):
        row = gpu_node["topology"][gpu_label(gpu)]
        order = [name for name in gpu_node["affinity"][gpu_label(gpu)]["nics"] if name in names]
        best = [name for name in order if row[name] == row[order[0]]]
        nic = min(best, key=lambda name: (used[name], order.index(name)), default=None)
        used.update([nic])
        peers = [other for other in gpus if other["cpu_affinity"] == gpu["cpu_affinity"]]
        bindings.append({
            "local_rank": rank,
            "gpu": gpu_label(gpu),
            "cpus": share(gpu["cpu_affinity"], peers.index(gpu), len(peers)),
            "numa_node": gpu["numa_node"],
            "nic": nic,
        })  # fmt: skip
    return bindings


def share(cpus: str | None, number: int, of: int) -> str | None:
    """Return the number-th of equal shares of a CPU list. Each range is divided, so that siblings stay together.

    >>> share("0-15,64-79", 1, 2)
    '8-15,72-79'
    """
    if cpus is None:
        return None
    parts = []
    for text in cpus.split(","):
        first, dash, last = text.partition("-")
        low, high = int(first), int(last or first)
        begin, end = (low + (high - low + 1) * step // of for step in (number, number + 1))
        if begin < end:
            parts.append(str(begin) if end - begin == 1 else f"{begin}-{end - 1}")
    return ",".join(parts) or cpus
