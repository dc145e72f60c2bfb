# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be tried out on a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..cluster.address import cluster_address
from .environment import MODULES
from .health import is_wanted, planned_gpus


def verification_plan(
    stack: Mapping, node: str, peers: Iterable[str], hostvars: Mapping[str, Mapping]
) -> dict[str, Any]:
    """{``nvidia_smi``, ``environments``: {name: modules}, ``peers``: {name: address}} for module node_probe,
    ``gpu_health``, whether module gpu_health has anything to judge, ``gpu_count`` for it, and ``torch_environment``, the
    name of the one in which collectives can run, or None.
    """
    facts = hostvars[node].get("ansible_facts") or {}
    environments = stack.get("environments") or []
    frameworks = {planned["name"]: planned.get("frameworks") or {} for planned in environments}
    return {
        "gpu_health": is_wanted(stack, facts.get("gpu_node") or {}),
        "gpu_count": planned_gpus(stack),
        "nvidia_smi": bool(stack.get("driver")),
        "environments": {
            name: [MODULES[framework] for framework in wanted if framework in MODULES]
            for name, wanted in frameworks.items()
        },
        "peers": {peer: cluster_address(hostvars[peer]) for peer in peers if peer != node},
        "torch_environment": next((name for name, wanted in frameworks.items() if "pytorch" in wanted), None),
    }
