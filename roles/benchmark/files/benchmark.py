# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what the GPUs of a machine or a cluster do: products, copies, collectives, training. One JSON document comes out.

    python benchmark.py --output benchmark.json                               # one GPU, or the processor
    python benchmark.py --ranks auto --output benchmark.json                  # all GPUs of a machine
    ansible-playbook allreduce.gpu.benchmark -i cluster                       # all nodes

Needs PyTorch 2.0 or later and nothing else; with pynvml it also watches the GPUs. Every figure is the median of several
repetitions, which stand next to it. What cannot be measured here has a code and a reason instead. docs/benchmark.md explains both.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import socket
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

import torch
from allreduce_benchmark.collectives import measure_collectives
from allreduce_benchmark.compute import measure_gemm, measure_memory
from allreduce_benchmark.place import Place, join, leave
from allreduce_benchmark.records import Record
from allreduce_benchmark.sampling import Sampler, Watch
from allreduce_benchmark.training import MODELS, measure_training
from allreduce_benchmark.transfers import measure_peers, measure_transfers
from torch.distributed.elastic.multiprocessing.errors import record

FORMAT = 1
PARTS = {
    "gemm": measure_gemm,
    "memory": measure_memory,
    "transfers": measure_transfers,
    "peers": measure_peers,
    "collectives": measure_collectives,
    "training": measure_training,
}
# What is left out on the command line, by kind of device.
DEFAULTS = {
    "cuda": {
        "batch_size": 64, "tuned_batch_size": 256, "image_size": 224, "steps": 20, "repeats": 5, "seconds": 0.2, "warmup": 10,
        "workers": 4, "models": list(MODELS),
    },
    "cpu": {
        "batch_size": 2, "tuned_batch_size": 2, "image_size": 64, "steps": 2, "repeats": 3, "seconds": 0.1, "warmup": 1,
        "workers": 0, "models": ["resnet50"],
    },
}  # fmt: skip


def parse_arguments() -> argparse.Namespace:
    """Return the options; None for those whose default depends on the device."""
    parser = argparse.ArgumentParser(description="Measure GPUs: products, copies, collectives, training.")
    add = parser.add_argument
    add("--device", choices=["auto", "cuda", "cpu"], default="auto", help="auto: the GPU where PyTorch sees one")
    add("--only", nargs="+", choices=list(PARTS), default=list(PARTS), metavar="PART", help=f"of {', '.join(PARTS)}")
    add(
        "--ranks",
        type=ranks,
        help="processes to start on this machine: a number, or auto for one per GPU (default: this one)",
    )
    add(
        "--at-most",
        nargs="+",
        choices=list(PARTS),
        default=list(PARTS),
        metavar="PART",
        help="leave out others, also of --only",
    )
    add("--models", nargs="+", choices=MODELS, help="to train (default: both on GPUs, resnet50 on processors)")
    add(
        "--arms",
        nargs="+",
        choices=["plain", "tuned"],
        default=["plain", "tuned"],
        help="ways to train (default: both)",
    )
    add("--batch-size", type=positive, help="images per rank and step of the plain loop (default 64; 2 on processors)")
    add("--tuned-batch-size", type=positive, help="the same of the tuned loop, halved until it fits (default 256; 2)")
    add("--image-size", type=image_size, help="pixels, a multiple of 16 (default 224; 64 on processors)")
    add(
        "--precision",
        choices=["auto", "bf16", "fp16", "fp32"],
        default="auto",
        help="of the tuned loop; auto: bf16, or fp16 on older GPUs",
    )
    add(
        "--compile",
        choices=["auto", "on", "off"],
        default="auto",
        help="torch.compile in the tuned loop; kept where it is faster",
    )
    add("--cuda-graphs", action="store_true", help="let torch.compile use CUDA graphs")
    add("--workers", type=at_least_zero, help="processes per rank that load images (default 4; 0 on processors)")
    add("--steps", type=positive, help="steps of a repetition (default 20; 2 on processors)")
    add("--warmup", type=positive, help="steps before the first repetition (default 10; 1 on processors)")
    add("--repeats", type=positive, help="repetitions, of which the median counts (default 5; 3 on processors)")
    add(
        "--seconds",
        type=duration,
        help="length of a repetition of what is not training (default 0.2; 0.1 on processors)",
    )
    add("--gemm-size", type=positive, help="rows and columns of the matrices (default 8192; 1024 on processors)")
    add("--timeout", type=positive, default=600, help="seconds a rank waits for the others (default 600)")
    add("--output", type=Path, help="file for the document (default: $ALLREDUCE_METRICS, else standard output)")
    return parser.parse_args()


def positive(text: str) -> int:
    """Return a number from 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1, not {text}")
    return int(text)


def at_least_zero(text: str) -> int:
    """Return a number from 0."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a number from 0, not {text}")
    return int(text)


def duration(text: str) -> float:
    """Return a number of seconds above 0, at most an hour."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, at most 3600, not {text}")
    return seconds


def ranks(text: str) -> int:
    """Return a number of processes; auto is one per GPU, or one without any."""
    return max(1, torch.cuda.device_count()) if text == "auto" else positive(text)


def image_size(text: str) -> int:
    """Return a number of pixels that ViT-B/16 can cut into patches."""
    if positive(text) % 16:
        raise argparse.ArgumentTypeError(f"must be a multiple of 16, not {text}")
    return int(text)


def start_ranks(count: int) -> NoReturn:
    """Become torchrun, which starts this program once per rank."""
    script = Path(sys.executable).with_name("torchrun")
    # As a module, it would import what lies in the current directory.
    torchrun = [str(script)] if script.is_file() else ["-m", "torch.distributed.run"]
    command = [sys.executable, *torchrun, "--standalone", f"--nproc-per-node={count}", *sys.argv]
    os.execv(sys.executable, command)  # noqa: S606 - a list, no shell


def complete(options: argparse.Namespace, place: Place) -> argparse.Namespace:
    """Fill in what was left out."""
    given = {name: value for name, value in vars(options).items() if value is not None}
    given["only"] = [part for part in options.only if part in options.at_most]
    return argparse.Namespace(**{**vars(options), **DEFAULTS[place.device.type], **given})


def describe(place: Place, watch: Watch) -> Record:
    """Return the description of this rank and its device."""
    found: Record = {
        "rank": place.rank,
        "local_rank": place.local_rank,
        "node": os.environ.get("ALLREDUCE_NODE") or socket.gethostname(),
        "device": place.device.type,
        "name": processor(),
        "threads": torch.get_num_threads(),
        "driver": watch.driver,
    }
    if place.is_cuda:
        properties = torch.cuda.get_device_properties(place.device)
        found.update(
            name=properties.name,
            memory_bytes=properties.total_memory,
            compute_capability=f"{properties.major}.{properties.minor}",
        )
    return found


def processor() -> str:
    """Return the model of the processor, or its architecture where the kernel does not name it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def versions() -> dict[str, str | None]:
    """Return the versions of what computes."""
    cuda = torch.cuda.is_available()
    nccl = torch.cuda.nccl.version() if cuda and torch.distributed.is_nccl_available() else ()
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "cudnn": str(torch.backends.cudnn.version() or "") or None,
        "nccl": ".".join(str(part) for part in nccl) or None,
    }


def measure(place: Place, options: argparse.Namespace, watch: Watch) -> tuple[list[Record], list[Record]]:
    """Return the measurements of this rank, those of all ranks among them, and what was seen of its GPU meanwhile."""
    measurements, samples = [], []
    for part in options.only:
        place.meet()
        with Sampler(watch) as sampler:
            for found in PARTS[part](place, options):
                measurements.append(found)
                say(place, found)
        samples.append(sampler.record(part, place.rank))
    return measurements, samples


def say(place: Place, found: Record) -> None:
    """Print one measurement for people, on rank 0."""
    if place.rank:
        return
    case = " ".join(f"{name}={value}" for name, value in found["case"].items())
    figure = (
        f"{found['median']:g} {found['unit']}" if found["status"] == "measured" else f"not measured: {found['reason']}"
    )
    print(f"{found['name']} {case}: {figure}", file=sys.stderr, flush=True)


def document(place: Place, options: argparse.Namespace, started: str) -> dict[str, Any]:
    """Measure everything, and return the document of all ranks."""
    watch = Watch(place)
    measurements, samples = measure(place, options, watch)
    # Of what all ranks measured together, every rank has the same.
    own = [one for one in measurements if one["rank"] is not None]
    # Beyond one node, the first rank of each: all would make a document that is too long to be fetched.
    kept = samples if place.local_world_size == place.world_size or not place.local_rank else []
    everyone = place.gather({"rank": describe(place, watch), "measurements": own, "samples": kept})
    return {
        "format": FORMAT,
        "started": started,
        "finished": now(),
        "world_size": place.world_size,
        "backend": torch.distributed.get_backend() if place.is_joined else None,
        "versions": versions(),
        "options": {name: value for name, value in vars(options).items() if name != "output"},
        "ranks": [one["rank"] for one in everyone],
        "measurements": [found for one in everyone for found in one["measurements"]]
        + [one for one in measurements if one["rank"] is None],
        "samples": [found for one in everyone for found in one["samples"]],
    }


def now() -> str:
    """Return the time as ISO 8601."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def write(found: dict[str, Any], output: Path | None) -> None:
    """Write the document where it is wanted, whole or not at all."""
    text = json.dumps(found, allow_nan=False) + "\n"
    path = output or (Path(os.environ["ALLREDUCE_METRICS"]) if os.environ.get("ALLREDUCE_METRICS") else None)
    if path is None:
        sys.stdout.write(text)
        return
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


@record  # torchrun then knows the exception of a rank that failed, not only its exit code
def main() -> None:
    """Measure, and let rank 0 write."""
    options = parse_arguments()
    if (options.ranks or 1) > 1 and "RANK" not in os.environ:
        start_ranks(options.ranks)
    started = now()
    place = join(options.device, options.timeout)
    found = document(place, complete(options, place), started)
    if place.rank == 0:
        write(found, options.output)
    leave(place)


if __name__ == "__main__":
    main()
