# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of the clusters that people have: one node, two equal ones, two that differ, a hundred, and eight GPUs in each."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.model import Report
from ansible_collections.allreduce.gpu.tests.report import cluster, simulated

from tests.support.benchmark import cluster as measured
from tests.support.benchmark import training, whole

PACKAGES = [f"nvidia-package-{number}" for number in range(14)]
ORIGIN = {"inventory": "cluster/hosts.yml", "collection": "1.2.3"}
NOTE = {
    "check": "oom_kills",
    "gpu": None,
    "measured": "2 killed: python3",
    "severity": "note",
    "action": "look at the jobs",
}


def nodes(count: int, wheels: int = 48) -> dict[str, Any]:
    """Verification of equal nodes whose environments have so many wheels; each has an address and a clock of its own."""
    requirements = [f"wheel-{number}" for number in range(wheels)]
    found = {}
    for number in range(1, count + 1):
        name = f"gpu-{number}"
        node = cluster.node(name, f"10.77.0.{number}")
        node["comparisons"] += [
            {
                "component": "environment main",
                "subject": one,
                "desired": "1.0",
                "observed": "1.0",
                "status": "as_planned",
            }
            for one in requirements
        ]
        node["checks"].append(cluster.check("own_name", name, "network", node["address"], node["address"]))
        node["checks"].append(cluster.check("clock_offset", name, "network", "at most 50 ms", f"{number} ms"))
        node["gpu_node_state"]["boot_id"] = f"boot-{number}"
        found[name] = node
    return {**cluster.verification(), **ORIGIN, "network": {}, "nodes": found}


def results(device: str = "cuda") -> list[dict[str, Any]]:
    """Training that succeeded on one and on two nodes, with its losses."""
    found = cluster.results()[1:3]
    for result in found:
        result["metrics"] |= {"device": device, "losses": [2.3 / (1 + step / 20) for step in range(200)]}
    return found


def one() -> Report:
    """One node of which nothing is installed from packages, with a benchmark."""
    verification = nodes(1)
    node = verification["nodes"]["gpu-1"]
    reason = "; ".join(f"{name} is missing" for name in PACKAGES)
    fix = "run site, which has not set up this node yet"
    expected = "14 as planned"
    node["checks"].append(
        cluster.check("driver_packages", "gpu-1", "coherence", expected, "0 as planned, 14 not", "failed", reason, fix)
    )
    node["comparisons"] += [
        {"component": "driver", "subject": name, "desired": "535.*", "observed": "", "status": "missing"}
        for name in PACKAGES
    ]
    node["comparisons"].append(
        {
            "component": "node",
            "subject": "time service",
            "desired": "enabled and active",
            "observed": "",
            "status": "unknown",
        }
    )
    node["gpu_health"] = {"verdict": "ok", "notes": [NOTE]}
    alone = measured({"gpu-1": [697.0]}, model="NVIDIA H100 80GB HBM3")
    alone["runs"][0]["document"]["measurements"] += [
        training(1197.0, 1, arm="plain"), training(5543.0, 1), training(345.0, 1, "vit_b_16", "plain"), training(3240.0, 1, "vit_b_16"),
    ]  # fmt: skip
    return cluster.build_report(verification, [], "One node", alone)


def equal() -> Report:
    """Two equal nodes that are containers of one machine, with training on processors whose GPUs were watched all the same."""
    verification = nodes(2)
    for node in verification["nodes"].values():
        node["gpu_node_state"]["boot_id"] = "the machine's"
        node["gpu_compute"] = False
        node["remark"] = "a simulated machine"
        node["gpu_health"] = {"verdict": "ok", "notes": [NOTE]}
    return cluster.build_report(verification, results("cpu"), "Two equal nodes", watched=cluster.watched)


def differing() -> Report:
    """Two nodes with another driver package, a benchmark, and a failed run."""
    verification = cluster.verification() | ORIGIN
    return cluster.build_report(verification, cluster.results(), "Two nodes", whole(), watched=cluster.watched)


def hundred() -> Report:
    """A hundred equal nodes, and two of them with a clock that is wrong by as much as only they know."""
    verification = nodes(100)
    for name in ("gpu-7", "gpu-8"):
        verification["nodes"][name]["checks"][-1].update(status="failed", reason="the clock is wrong")
    return cluster.build_report(verification, results(), "A hundred nodes")


def dgx() -> Report:
    """Three nodes with eight GPUs, and one of which some are broken."""
    names = {f"dgx-{number}": "dgx" for number in (1, 2, 3)}
    verification = simulated.verification(**names, broken="broken") | ORIGIN
    return cluster.build_report(copy.deepcopy(verification), results(), "Eight GPUs in each")


SAMPLES = {make.__name__: make for make in (one, equal, differing, hundred, dgx)}
