# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the collectives over all ranks: right numbers, and how fast an all-reduce is. Runs under torchrun.

Writes to $ALLREDUCE_METRICS:
  {world_size, backend, device, torch, all_passed, checks: [{name, expected, measured, passed}],
   latency_seconds, bandwidth: [{bytes, seconds, algbw_gbytes_per_second, busbw_gbytes_per_second}]}

Bandwidths as defined by nccl-tests (doc/PERFORMANCE.md): algbw = bytes / time, and for an all-reduce over n ranks
busbw = algbw * 2 * (n - 1) / n, which can be compared with the speed of the links whatever n is.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

MIB = 1 << 20
# Tensors that collectives were given, to the end: PyTorch before 2.8 waits for Gloo's threads with the interpreter's lock
# held, and a thread that drops the last reference of a tensor waits for that lock (pytorch/pytorch, issue 56297).
held: list[torch.Tensor] = []


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check collectives over all ranks.")
    parser.add_argument(
        "--device", choices=["cuda", "cpu"], required=True, help="what the ranks compute on: NCCL between GPUs, or Gloo"
    )
    parser.add_argument(
        "--mebibytes", type=int, nargs="*", help="sizes to time (default: 1 16 with Gloo, 16 256 with NCCL)"
    )
    parser.add_argument("--repeats", type=int, default=5, help="timings of each size, of which the median counts")
    parser.add_argument("--timeout", type=int, default=120, help="seconds a rank waits for the others (default 120)")
    return parser.parse_args()


def hold(tensor: torch.Tensor) -> torch.Tensor:
    held.append(tensor)
    return tensor


def join_ranks(kind: str, timeout: int) -> torch.device:
    """Join the process group; returns the device of this rank. One that is wanted and absent is an error, never replaced."""
    wait = timedelta(seconds=timeout)
    if kind == "cpu":
        dist.init_process_group("gloo", timeout=wait)
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=wait)
    return device


def check_collectives(device: torch.device) -> list[dict]:
    """Each collective with numbers that come out wrong if a rank is missing, doubled or out of order."""
    rank, size = dist.get_rank(), dist.get_world_size()
    checks = []

    def check(name: str, measured: list, expected: list) -> None:
        checks.append({"name": name, "expected": expected, "measured": measured, "passed": measured == expected})

    for kind in (torch.float32, torch.int64):
        # Powers of two: every subset of the ranks has a sum of its own. Exact in both types up to 24 ranks.
        base = 2 if size <= 24 else 1
        value = hold(torch.tensor([base**rank, 1], dtype=kind, device=device))
        dist.all_reduce(value)
        name = f"all_reduce_sum_{str(kind).rpartition('.')[2]}"
        check(name, [int(x) for x in value.tolist()], [sum(base**r for r in range(size)), size])
    value = hold(torch.tensor([float(rank)], device=device))
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    check("all_reduce_max", value.tolist(), [size - 1.0])
    parts = [hold(torch.zeros(1, dtype=torch.int64, device=device)) for dummy in range(size)]
    dist.all_gather(parts, hold(torch.tensor([rank * rank], device=device)))
    check("all_gather", [part.item() for part in parts], [r * r for r in range(size)])
    value = hold(torch.tensor([size if rank == size - 1 else -1], device=device))
    dist.broadcast(value, src=size - 1)
    check("broadcast_from_last", value.tolist(), [size])
    return checks


def agree(checks: list[dict], device: torch.device) -> list[dict]:
    """Rank 0's checks, failed where any rank's failed."""
    bad = hold(torch.tensor([0 if check["passed"] else 1 for check in checks], device=device))
    dist.all_reduce(bad)
    return [
        {**check, "passed": count == 0, **({"failed_on_ranks": count} if count else {})}
        for check, count in zip(checks, bad.tolist())  # noqa: B905 - strict= needs Python 3.10
    ]


def time_all_reduce(count: int, device: torch.device, repeats: int) -> float:
    """Median seconds of an all-reduce of COUNT float32, the slowest rank's."""
    data = hold(torch.ones(count, device=device))
    seconds = []
    for turn in range(repeats + 2):
        barrier(device)
        began = time.perf_counter()
        dist.all_reduce(data)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        took = hold(torch.tensor([time.perf_counter() - began], device=device))
        dist.all_reduce(took, op=dist.ReduceOp.MAX)
        data.fill_(1.0)
        # The first turns open connections.
        if turn >= 2:
            seconds.append(took.item())
    return statistics.median(seconds)


def barrier(device: torch.device) -> None:
    if device.type == "cuda":
        dist.barrier(device_ids=[device.index])
        torch.cuda.synchronize(device)
    else:
        dist.barrier()


def measure(size: int, device: torch.device, repeats: int) -> dict:
    seconds = time_all_reduce(size // 4, device, repeats)
    ranks = dist.get_world_size()
    algorithm = size / seconds / 1e9
    return {
        "bytes": size,
        "seconds": seconds,
        "algbw_gbytes_per_second": algorithm,
        "busbw_gbytes_per_second": algorithm * 2 * (ranks - 1) / ranks,
    }


@record
def main() -> int:
    args = parse_arguments()
    device = join_ranks(args.device, args.timeout)
    checks = agree(check_collectives(device), device)
    sizes = args.mebibytes or ([16, 256] if device.type == "cuda" else [1, 16])
    result = {
        "world_size": dist.get_world_size(),
        "backend": dist.get_backend(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "all_passed": all(check["passed"] for check in checks),
        "checks": checks,
        "latency_seconds": time_all_reduce(1, device, 4 * args.repeats),
        # One rank moves nothing.
        "bandwidth": [measure(size * MIB, device, args.repeats) for size in sizes if dist.get_world_size() > 1],
    }
    if dist.get_rank() == 0:
        print(json.dumps(result, indent=1), flush=True)
        if os.environ.get("ALLREDUCE_METRICS"):
            Path(os.environ["ALLREDUCE_METRICS"]).write_text(json.dumps(result) + "\n", encoding="utf-8")
    dist.destroy_process_group()
    if not result["all_passed"]:
        names = ", ".join(check["name"] for check in checks if not check["passed"])
        print(f"Collectives with wrong numbers: {names}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
