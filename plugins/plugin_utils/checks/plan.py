# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the probes of a node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..cluster.address import READS as ADDRESS
from ..cluster.address import cluster_address
from ..drift.desired import desired_driver
from ..environments import extras
from ..network.schedule import partners
from .environment import MODULES, is_for_cuda
from .health import is_wanted, planned_gpus

# What is read of all nodes.
READS = (*ADDRESS, "ansible_facts.gpu_stack", "__verify_gpu_compute")


def gpu_compute(variables: Mapping) -> bool:
    """Return True if a node's GPUs are said to compute, as role verify noted it; what is not noted is judged strictly."""
    return bool(variables.get("__verify_gpu_compute", True))


def torch_environment(stack: Mapping) -> Mapping | None:
    """Return the environment in which collectives can run."""
    environments = stack.get("environments") or []
    return next((planned for planned in environments if "pytorch" in (planned.get("frameworks") or {})), None)


def runs_without_gpus(variables: Mapping) -> bool:
    """Return True if a node is planned to run collectives on GPUs that are said not to compute."""
    stack = (variables.get("ansible_facts") or {}).get("gpu_stack") or {}
    return is_for_cuda(torch_environment(stack) or {}) and not gpu_compute(variables)


def verification_cluster(there: Mapping[str, Mapping]) -> dict[str, Any]:
    """Return the facts that the plan of each node needs of the others: {addresses: {node: address}, without_gpus: whether a node
    runs collectives without GPUs}.

    there: the variables of the nodes of the play, without those that are left out. Once for all nodes: each would otherwise read
    the variables of all others.
    """
    return {
        "addresses": {name: cluster_address(variables) for name, variables in there.items()},
        "without_gpus": any(runs_without_gpus(variables) for variables in there.values()),
    }


def collectives(stack: Mapping, without_gpus: bool, nproc_per_node: str) -> dict[str, str]:
    """Return {device, nproc_per_node} of a node's ranks: the GPUs that it is planned for, and nothing else in their place,
    unless a node of the run is said to have none that compute; then all ranks use their processors.
    """
    planned = is_for_cuda(torch_environment(stack) or {})
    if planned and not without_gpus:
        return {"device": "cuda", "nproc_per_node": nproc_per_node}
    return {"device": "cpu", "nproc_per_node": "1" if nproc_per_node == "auto" else nproc_per_node}


def verification_plan(
    stack: Mapping,
    node: str,
    variables: Mapping,
    cluster: Mapping,
    peers: Iterable[str],
    nproc_per_node: str = "auto",
    network_rounds: int = 0,
) -> dict[str, Any]:
    """Return the plan of the verification of a node.

    variables: the node's; cluster: of verification_cluster; peers: the nodes to reach, of those with an address in it;
    network_rounds: 0 leaves the network alone

    {``nvidia_smi``, ``environments``: {name: modules}, ``peers``: {name: address}} are for module node_probe,
    ``gpu_health``, whether module gpu_health has anything to judge, ``gpu_count`` for it, ``torch_environment``, the
    name of the one in which collectives can run, or None, and ``collectives``, where and with how many ranks they do.
    ``network`` is for module node_probe, None where there is nothing to examine.
    """
    addresses = cluster["addresses"]
    peers = [peer for peer in peers if peer in addresses]
    facts = variables.get("ansible_facts") or {}
    environments = stack.get("environments") or []
    frameworks = {planned["name"]: planned.get("frameworks") or {} for planned in environments}
    packages = {planned["name"]: extras.modules(planned.get("requirements") or []) for planned in environments}
    return {
        "gpu_health": is_wanted(stack, facts.get("gpu_node") or {}),
        "gpu_count": planned_gpus(stack),
        "nvidia_smi": desired_driver(stack, variables) is not None,
        "environments": {
            name: [*(MODULES[framework] for framework in wanted if framework in MODULES), *packages[name]]
            for name, wanted in frameworks.items()
        },
        "peers": {peer: addresses[peer] for peer in peers if peer != node},
        "torch_environment": (torch_environment(stack) or {}).get("name"),
        "collectives": collectives(stack, cluster["without_gpus"], nproc_per_node),
        "network": network(node, peers, cluster_address(variables), network_rounds),
    }


def network(node: str, peers: Collection[str], address: str | None, rounds: int) -> dict[str, Any] | None:
    """Return {name, address, peers} for module node_probe: in a large cluster, the nodes of a few rounds."""
    met = partners(node, peers, rounds) if address else []
    return {"name": node, "address": address, "peers": met} if met else None
