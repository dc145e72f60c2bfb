# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents as benchmark.py writes them, of clusters that a test imagines."""


def measured(name, value, rank=None, case=None, unit="GB/s", **more):
    """Return one measurement with three equal repetitions."""
    figures = {"median": value, "least": value, "most": value, "deviation": 0.0, "repetitions": [value] * 3}
    return {
        "name": name, "case": case or {}, "rank": rank, "device": "cuda", "unit": unit, "higher_is_better": True,
        "status": "measured", "detail": {}, **figures, **more,
    }  # fmt: skip


def lacking(name, code, rank=None, case=None):
    return {
        "name": name, "case": case or {}, "rank": rank, "device": "cuda", "unit": "GB/s", "higher_is_better": True,
        "status": "not_measured", "code": code, "reason": f"because of {code}",
    }  # fmt: skip


def training(value, ranks, model="resnet50", arm="tuned", **more):
    """Return the throughput of all ranks."""
    case = {"model": model, "arm": arm, "image_size": 224, "ranks": ranks}
    return measured("training", value, None, case, "images/s", **more)


def document(node, measurements, gpus=2, model="NVIDIA A100-SXM4-80GB", nodes=1):
    """Return the document of a run with so many GPUs on each of so many nodes."""
    names = [node] if nodes == 1 else [f"{node}{number}" for number in range(nodes)]
    ranks = [
        {"rank": number, "local_rank": number % gpus, "node": names[number // gpus], "device": "cuda", "name": model}
        for number in range(gpus * nodes)
    ]
    return {
        "format": 1, "world_size": gpus * nodes, "backend": "nccl", "versions": {"torch": "2.13.0", "cuda": "12.6"},
        "ranks": ranks, "measurements": measurements, "samples": [],
    }  # fmt: skip


def result(found):
    """Return what action torchrun returns of a run that left this document."""
    return {
        "name": "node",
        "nodes": [found["ranks"][0]["node"]],
        "result": {"training": {"status": "succeeded", "metrics": found}},
    }


def run(name, nodes, found):
    return {"name": name, "nodes": nodes, "status": "succeeded", "reason": "", "document": found}


def cluster(values, **more):
    """Return a benchmark of nodes that ran alone. values: {node: the figure of each of its GPUs}."""
    runs = [
        run("node", [node], document(node, [measured("gemm", value, rank, {"precision": "bf16"}, "TFLOP/s")
                                            for rank, value in enumerate(figures)], gpus=len(figures), **more))
        for node, figures in values.items()
    ]  # fmt: skip
    return {"format": 1, "run_id": "20261123T150000", "finished": "2026-11-23T15:20:00Z", "runs": runs}


def sampled(during, rank, **medians):
    figures = {name: {"median": value, "least": value, "most": value} for name, value in medians.items()}
    return {"during": during, "rank": rank, "status": "measured", "figures": figures}


def phases(total, compute, communication):
    """Return the detail of a training, in seconds."""
    seconds = {
        "total": total,
        "compute": compute,
        "communication": communication,
        "data": total - compute - (communication or 0),
    }
    return {
        "step_seconds": seconds,
        "batch_per_rank": 256,
        "precision": "bfloat16",
        "memory_format": "channels_last",
        "compiled": True,
    }


def whole():
    """Return the benchmark of gpu-1 and gpu-2 with two GPUs each, one of which is slow."""

    def node(name, slow):
        found = [
            *(measured("gemm", slow if rank else 280.0, rank, {"precision": "bf16", "size": 8192}, "TFLOP/s") for rank in range(2)),
            *(lacking("gemm", "not_supported", rank, {"precision": "tf32"}) for rank in range(2)),
            training(300.0, 2, arm="plain"), training(1800.0, 2, detail=phases(0.284, 0.25, 0.03)),
        ]  # fmt: skip
        samples = [sampled("gemm", rank, power_watts=390.0, temperature_celsius=61.0) for rank in range(2)]
        return run("node", [name], {**document(name, found), "samples": samples})

    alone = document(
        "gpu-1", [training(160.0, 1, arm="plain"), training(960.0, 1, detail=phases(0.267, 0.25, None))], gpus=1
    )
    together = document("gpu-", [training(3200.0, 4, detail=phases(0.32, 0.25, 0.06))], nodes=2)
    runs = [
        node("gpu-1", 280.0),
        run("gpu", ["gpu-1"], alone),
        run("nodes", ["gpu-1", "gpu-2"], together),
        node("gpu-2", 140.0),
    ]
    return {"format": 1, "run_id": "20261123T150000", "finished": "2026-11-23T15:20:00Z", "runs": runs}
