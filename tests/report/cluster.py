# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What verification and training leave behind on imagined clusters, in the form the report reads."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import drift
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.check import on_node
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents import watching
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.benchmark import Benchmark
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Stack
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.training import TrainingResult
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.verification import Verification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.record import node_comparisons, record
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.requests import request_digest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import build, sources
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.model import Report

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
DRIVER = "535.261.03"
KERNEL = "6.1.0-40-amd64"


def verification() -> dict[str, Any]:
    """Two nodes with two A40 each; gpu-2 has an older driver package, one failed and one unknown check."""
    first, second = node("gpu-1", "10.77.0.11"), node("gpu-2", "10.77.0.12")
    second["gpu_node_state"]["packages"]["nvidia-driver"] = "530.41.03-1"
    # Asked for by the distribution: shown, and no difference from the plan.
    pending = {"reason": "new kernel module", "since": "2026-11-21T15:01:00Z", "by_role": False}
    second["gpu_node_state"]["reboot_pending"] = pending
    second["comparisons"] = [*comparisons(second["gpu_stack"], second["gpu_node_state"]), *network_comparisons()]
    second["gpu_stack"]["warnings"] = ["Debian 12 leaves its full support in 2026: plan for Debian 13."]
    second["checks"][0].update(
        status="failed", measured="535.247.01", reason="module and library differ", fix="reboot the node"
    )
    second["checks"][3].update(status="unknown", measured="", reason="fabric manager state could not be read")
    return {
        "format": 1,
        "finished": "2026-11-21T15:30:00Z",
        "nodes": {"gpu-1": first, "gpu-2": second},
        "cluster_checks": [
            check("all_reduce", "cluster", "collectives", "sum 3.0 on 2 ranks", "sum 3.0 on 2 ranks"),
            check("clock_offset", "cluster", "network", "at most 50 ms", "3 ms"),
        ],
        "network": network({"gpu-1": 9000, "gpu-2": 1500}),
    }


def network(mtus: dict[str, int]) -> dict[str, Any]:
    """All pairs of nodes with these MTUs: larger packets do not arrive, and the last node takes a tenth of the bandwidth."""
    names = list(mtus)
    pairs = [(a, b) for a in names for b in names if a != b]
    return {
        "links": [
            {"node": name, "address": f"10.77.0.{number}", "link": {"interface": "ens1", "mtu": mtu, "speed": 25000}}
            for number, (name, mtu) in enumerate(mtus.items(), 11)
        ],
        "pairs": [
            {
                "source": a,
                "target": b,
                "way": {
                    "size": mtus[a], "full": mtus[a] <= mtus[b], "reached": True, "rtt": 0.213, "path_mtu": mtus[a],
                    "source": "10.77.0.11",
                },
                "speed": {
                    "source": a, "target": b, "port": 5201, "latency": 0.041,
                    "bits_per_second": 2.34e9 if b == names[-1] else 23.4e9,
                },
            }
            for a, b in pairs
        ],
        "full_rounds": len(names) - 1,
        "rounds": len(names) - 1,
    }  # fmt: skip


def network_comparisons() -> list[dict[str, str]]:
    """What verification writes of a firewall and of limits, everything as declared, among what is not a limit."""
    found = [
        ("firewall", "rules of nftables", "as declared", "as declared", "rules"),
        ("firewall", "peers", "2 peers", "2 peers", "peers"),
        ("tuning", "net.core.somaxconn", "4096", "4096", "sysctl"),
        ("tuning", "memlock of a login", "unlimited", "unlimited", "limit"),
        ("tuning", "nofile of a new service", "1048576", "1048576", "limit"),
        ("tuning", "nproc of a login", "unlimited", "unlimited", "limit"),
    ]
    return [
        record(Comparison(component, subject, desired, observed, Status.AS_PLANNED, Remedy.NONE, kind))
        for component, subject, desired, observed, kind in found
    ]


def shares(interface: str, guarantee: int = 20_000_000_000) -> dict[str, Any]:
    """Fact gpu_qos of a node whose interface of 25 Gbit/s is shaped, beside one that is not."""
    classes = [
        {"handle": "a11e:1", "parent": None, "prio": 0, "rate": 25_000_000_000, "ceil": 25_000_000_000},
        {"handle": "a11e:10", "parent": "a11e:1", "prio": 0, "rate": guarantee, "ceil": 25_000_000_000},
        {
            "handle": "a11e:20",
            "parent": "a11e:1",
            "prio": 1,
            "rate": 25_000_000_000 - guarantee,
            "ceil": 10_000_000_000,
        },
    ]
    shaped = {"root": {"kind": "htb", "handle": "a11e:"}, "classes": classes, "leaf": "fq_codel"}
    other = {"root": {"kind": "htb", "handle": "1:"}, "classes": [{"handle": "1:10", "rate": 1000, "ceil": 1000}]}
    return {
        "recorded": True, "tc": True, "nft": True, "table": "d", "kernel": {"htb": True},
        "interfaces": {interface: {"speed": 25000, "shaped": shaped}, "lo": {"shaped": None}, "tun0": {"shaped": other}},
    }  # fmt: skip


def pcie_pairs() -> list[dict[str, Any]]:
    """Two GPUs and an adapter: one GPU behind the adapter's switch, where ACS redirects."""
    bridge = "ACS redirects at bridge 0000:12:00.0 (ReqRedir, CmpltRedir)"
    return [
        {"one": "GPU0", "other": "GPU1", "verdict": "root_complex", "reasons": ["root ports of pci0000:10"]},
        {"one": "GPU0", "other": "mlx5_0", "verdict": "redirected", "reasons": [bridge]},
        {"one": "GPU1", "other": "mlx5_0", "verdict": "direct", "reasons": []},
    ]


def rdma_adapters() -> list[dict[str, Any]]:
    """One adapter with a lossless port that reaches the GPUs' memory."""
    port = {"port": 1, "link_layer": "Ethernet", "state": "ACTIVE", "rate_gbps": 25.0, "netdevs": ["ens1"]}
    sentence = "mlx5_0 at ens1: NCCL uses class 106, which is DSCP 26, priority 3, lossless, traffic class 3 with 50 %."
    return [
        {
            "name": "mlx5_0",
            "ports": [port],
            "gpudirect": [{"gpus": ["0000:01:00.0", "0000:02:00.0"], "path": "dma-buf", "reasons": []}],
            "chains": [{"interface": "ens1", "whole": True, "sentence": sentence}],
        }
    ]


def results() -> list[dict[str, Any]]:
    """Training on one and on two nodes, a failed run with hostile text, and an older run on one node."""
    return [
        run("20261121T150000-1n", ["gpu-1"], "2026-11-21T15:00:00Z", "2026-11-21T15:01:30Z", 900.0),
        run("20261121T152000-1n", ["gpu-1"], "2026-11-21T15:20:00Z", "2026-11-21T15:21:12Z", 1212.5),
        run("20261121T153000-2n", ["gpu-1", "gpu-2"], "2026-11-21T15:30:00Z", "2026-11-21T15:30:40Z", 2255.0),
        failed_run(),
    ]


def failed_run() -> dict[str, Any]:
    """A run that ended on its second rank."""
    failed = run("20261121T154000-2n", ["gpu-1", "gpu-2"], "2026-11-21T15:40:00Z", "2026-11-21T15:40:09Z", 0)
    tail = [
        "Traceback (most recent call last):",
        '  File "/home/train/finetune.py", line 88, in <module>',
        "\x1b[31mRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\x1b[0m",
        HOSTILE,
        "x" * 300,
    ]
    failed.update(script="finetune.py", status="failed", metrics=None)
    failed["failure"] = {"node": "gpu-2", "rank": 1, "exit_code": 3, "tail": tail}
    return failed


def run(run_id: str, nodes: list[str], started: str, finished: str, throughput: float) -> dict[str, Any]:
    """A run that succeeded, two processes per node."""
    return {
        "format": 1,
        "run_id": run_id,
        "script": "train_ddp.py",
        "nodes": nodes,
        "world_size": 2 * len(nodes),
        "started": started,
        "finished": finished,
        "status": "succeeded",
        "failure": None,
        "metrics": {
            "samples_per_second": throughput,
            "loss_first": 2.3026,
            "loss_last": 0.4127,
            "epochs": 3,
            "device": "cuda",
            "backend": "nccl",
        },
    }


def check(
    name: str,
    node_name: str,
    category: str,
    expected: str,
    measured: str,
    status: str = "passed",
    reason: str = "",
    fix: str = "",
) -> dict[str, Any]:
    """One check."""
    return {
        "name": name,
        "node": node_name,
        "category": category,
        "expected": expected,
        "measured": measured,
        "status": status,
        "reason": reason,
        "fix": fix,
    }


def node(name: str, address: str) -> dict[str, Any]:
    """A Debian 12 node with two A40 on which everything is as planned."""
    return {
        "address": address,
        "facts": {
            "distribution": "Debian",
            "distribution_version": "12.11",
            "kernel": KERNEL,
            "architecture": "x86_64",
            "processor_vcpus": 64,
            "memtotal_mb": 515543,
        },
        "gpu_node": _gpu_node(),
        "gpu_stack": _stack(),
        "gpu_node_state": _state(),
        "comparisons": [*comparisons(_stack(), _state()), *network_comparisons()],
        "gpu_qos": shares("ens1"),
        "pcie_pairs": pcie_pairs(),
        "rdma_adapters": rdma_adapters(),
        "checks": [
            check("driver_version", name, "coherence", DRIVER, DRIVER),
            check("dkms_module", name, "coherence", f"{DRIVER} for {KERNEL}", f"{DRIVER} for {KERNEL}"),
            check("gpu_count", name, "health", "2", "2"),
            check("fabric_manager", name, "health", "not needed", "not needed"),
            check("torch_version", name, "environment", "2.6.0", "2.6.0+cu124"),
            check("cuda_available", name, "environment", "yes", "yes"),
            check("clock_synchronised", name, "network", "yes", "yes"),
            check("rdma_bandwidth", name, "network", "at least 45 Gbit/s", "", "skipped", "no InfiniBand or RoCE port"),
            check("training_step", name, "training", "loss falls", "2.303 to 0.413"),
        ],
    }


def comparisons(stack: dict[str, Any], state: dict[str, Any]) -> list[dict[str, str]]:
    """What verification writes of a plan and a node."""
    return [record(one) for one in node_comparisons(stack, state, {})]


def verify_again(node: dict[str, Any], name: str) -> None:
    """Write the comparisons of a node anew, after its state changed, and the checks that come of them."""
    found = node_comparisons(node["gpu_stack"], node["gpu_node_state"], {})
    node["comparisons"] = [record(one) for one in found]
    node["checks"] += on_node(name, drift.checks(found))


def _gpu_node() -> dict[str, Any]:
    gpu = {"name": "NVIDIA A40", "memory_total_mib": 46068, "compute_capability": "8.6"}
    gpus = [gpu | {"index": index, "pci_bus_id": f"0000:{index + 1:02x}:00.0"} for index in range(2)]
    return {"driver": {"loaded_version": DRIVER, "library_version": DRIVER, "nvml": "ok"}, "gpus": gpus, "problems": []}


def _stack() -> dict[str, Any]:
    return {
        "table_version": "2026.11.21",
        "kind": "5f0c77a1",
        "os": {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"},
        "gpus": [{"model": "A40", "compute_capability": "8.6", "count": 2}],
        "driver": {
            "branch": "535",
            "version": DRIVER,
            "source": "distribution",
            "kernel_modules": "proprietary",
            "package_manager": "apt",
            "packages": [
                {"name": "nvidia-kernel-dkms", "version": "535.*"},
                {"name": "nvidia-driver", "version": "535.*"},
                {"name": "nvidia-persistenced", "version": None},
            ],
            "components": ["contrib", "non-free", "non-free-firmware"],
            "held": ["nvidia-*"],
            "dkms_module": "nvidia-current",
        },
        "fabric_manager": None,
        "cuda": None,
        "python": "3.11",
        "environments": [
            {
                "name": "main",
                "python": "3.11",
                "accelerator": "cuda",
                "requirements": ["torch==2.6.0", "numpy"],
                "index": {"name": "cu124", "url": "https://wheels.example/cu124"},
                "frameworks": {"pytorch": "2.6.0"},
            }
        ],
        "reasons": [
            {"component": "driver", "text": "Debian 12 carries branch 535, which drives the A40 until June 2026."},
            {"component": "pytorch", "text": "2.6.0 is the newest release whose CUDA 12.4 build driver 535 can run."},
        ],
        "warnings": [],
    }


def _state() -> dict[str, Any]:
    stack = parse(Stack, _stack())
    installed = {"torch": "2.6.0+cu124", "numpy": "2.2.4"}
    lock = {"request": request_digest(stack.environments[0], stack.os), "packages": dict(installed)}
    return {
        "kernel": {"running": KERNEL, "installed": [KERNEL], "headers": [KERNEL], "newest": KERNEL},
        "container": False,
        "package_manager": "apt",
        "packages": {
            "nvidia-kernel-dkms": f"{DRIVER}-1",
            "nvidia-driver": f"{DRIVER}-1",
            "nvidia-persistenced": "535.171.04-1~deb12u1",
        },
        "package_manager_interrupted": False,
        "apt_components": ["main", "contrib", "non-free", "non-free-firmware"],
        "apt_mirrors": [
            {
                "uri": "http://archive.example/debian",
                "suite": "bookworm",
                "components": ["main", "contrib", "non-free", "non-free-firmware"],
            }
        ],
        "dkms": [
            {"module": "nvidia-current", "version": DRIVER, "kernel": KERNEL, "arch": "x86_64", "status": "installed"},
        ],
        "driver": {"loaded": DRIVER, "installed": DRIVER},
        "services": {"chrony": {"enabled": True, "active": True}},
        "environments": {"main": {"python": "3.11.2", "packages": installed, "lock": lock}},
        "reboot_pending": None,
    }


def many_nodes(count: int) -> dict[str, Any]:
    """A large cluster: equal nodes but for one, and a bandwidth measured slightly differently on each."""
    document = verification()
    document["nodes"] = {f"gpu-{number}": copy.deepcopy(document["nodes"]["gpu-1"]) for number in range(1, count + 1)}
    for number in range(1, count + 1):
        one = document["nodes"][f"gpu-{number}"]
        one["address"] = f"10.77.{number // 250}.{number % 250 + 1}"
        measured = f"{21 + number / count:.3f} GB/s"
        one["checks"].append(check("bus_bandwidth", f"gpu-{number}", "collectives", "at least 20 GB/s", measured))
    document["nodes"]["gpu-7"]["checks"][0].update(status="failed", measured="535.247.01")
    state = document["nodes"]["gpu-7"]["gpu_node_state"]
    state["driver"]["installed"] = "530.41.03"
    document["nodes"]["gpu-7"]["comparisons"] = [*comparisons(_stack(), state), *network_comparisons()]
    return document


def long_words(value: Any) -> Any:
    """The same document with every text grown to a word that fits no screen; what the report decides by stays."""
    if isinstance(value, list):
        return [long_words(item) for item in value]
    if isinstance(value, dict):
        kept = ("status", "category", "kind", "remedy", "started", "finished", "result")
        return {key: item if key in kept else long_words(item) for key, item in value.items()}
    return value + "m" * 150 if isinstance(value, str) else value


def build_report(verification: Any, results: list[Any], title: str, benchmark: Any = None, **more: Any) -> Report:
    """The report of documents that come through its door, as if they stood in files."""
    runs = [sources.parsed(TrainingResult, one, Path("result.json")) for one in results]
    measured = sources.parsed(Benchmark, benchmark, Path("benchmark.json")) if benchmark else None
    return build.build(sources.parsed(Verification, verification, Path("verify.json")), runs, title, measured, **more)


def watched(run: str) -> list[watching.Watching]:
    """What 16 GPUs did in a run of ten minutes: one of them hardly worked, and all wait for each other at times."""
    names = ("utilization_percent", "memory_used_mib", "power_watts", "temperature_celsius", "clock_sm_mhz")
    found = []
    for node in ("gpu-1", "gpu-2"):
        samples = []
        for at in range(0, 600, 2):
            busy = [min(100, 15 + at) if at % 60 > 8 else 20 + number for number in range(8)]
            busy[5] = 12 if node == "gpu-2" else busy[5]
            samples.append([float(at), [[use, 61000, 90 + 3 * use, 35 + use // 3, 1980 - use // 10] for use in busy]])
        head = {"quantities": names, "gpus": [f"0000:{number:02x}:00.0" for number in range(8)]}
        found.append(watching.read(node, "\n".join(map(json.dumps, [head, *samples]))))
    return [one for one in found if one]


def write(directory: Path, document: dict[str, Any], found: list[dict[str, Any]]) -> Path:
    """The inputs as files below the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "verify.json").write_text(json.dumps(document), encoding="utf-8")
    for result in found:
        folder = directory / "training" / result["run_id"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    return directory
