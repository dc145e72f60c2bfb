#!/usr/bin/env python3
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sums over all ranks with mpi4py and the MPI of the nodes, checked and timed; to start your own from.

    mpirun -np 2 -H gpu-1:1,gpu-2:1 /opt/allreduce/envs/main/bin/python mpi_allreduce.py
    ansible-playbook allreduce.gpu.train -e train_launcher=mpirun -e train_script=examples/mpi_allreduce.py

Needs mpi4py and NumPy in the environment (`python_env_packages: [mpi4py, numpy]`), and Open MPI or MPICH on every node, whose mpirun
starts it. Arrays are in the memory of the processors: distributions build their MPI without CUDA. Gradients on GPUs are for
NCCL, as in train_ddp.py, which mpirun starts as well.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import numpy

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py is there and finds no MPI
    sys.exit(f"{error}: this needs mpi4py in the environment (python_env_packages) and Open MPI or MPICH on the node.")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Sum arrays over all ranks with MPI, check the sums, and time them.")
    add = parser.add_argument
    add("--megabytes", type=float, nargs="+", default=[0.001, 1, 16], help="sizes of the arrays (default 0.001 1 16)")
    add("--repeats", type=int, default=10, help="sums of each size, of which the fastest counts (default 10)")
    args = parser.parse_args()
    if args.repeats < 1 or min(args.megabytes) < 1e-5:
        parser.error("--repeats must be 1 or more, and --megabytes 0.00001 or more")
    return args


def measure(world: MPI.Comm, count: int, repeats: int) -> float:
    """Sum COUNT numbers over all ranks REPEATS times; returns the seconds that the slowest rank took for the fastest sum."""
    size = world.Get_size()
    mine = numpy.arange(count, dtype="float32") % 7 + world.Get_rank()
    total = numpy.empty_like(mine)
    seconds = []
    for _repeat in range(repeats):
        total.fill(-1)
        world.Barrier()
        began = MPI.Wtime()
        # Capital letters: the arrays' own memory. world.allreduce(mine) would pickle them.
        world.Allreduce(mine, total, op=MPI.SUM)
        seconds.append(world.allreduce(MPI.Wtime() - began, op=MPI.MAX))
    expected = size * (numpy.arange(count, dtype="float32") % 7) + size * (size - 1) / 2
    if not numpy.array_equal(total, expected):
        # Not an exception: the other ranks would wait for this one.
        print(f"rank {world.Get_rank()} got a wrong sum of {count} numbers", file=sys.stderr, flush=True)
        world.Abort(1)
    return min(seconds)


def main() -> None:
    args = parse_arguments()
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    nodes = sorted(set(world.allgather(MPI.Get_processor_name())))
    name, version = MPI.get_vendor()
    library = f"{name} {'.'.join(map(str, version))}"
    if rank == 0:
        ranks, where = f"{size} rank{'s' * (size != 1)}", f"{len(nodes)} node{'s' * (len(nodes) != 1)}"
        print(f"{ranks} on {where} ({', '.join(nodes)}) with {library}", flush=True)
        if size == 1:
            print("one rank has no other to sum with; start more with mpirun -np 2", flush=True)
    metrics = {"world_size": size, "nodes": len(nodes), "library": library, "all_reduce": []}
    for megabytes in args.megabytes:
        count = max(1, round(megabytes * 1e6 / 4))
        seconds = measure(world, count, args.repeats)
        # What each rank has to send and receive in a ring, so that figures of different numbers of ranks compare.
        rate = 2 * (size - 1) / size * 4 * count / seconds / 1e9
        metrics["all_reduce"].append({"bytes": 4 * count, "seconds": seconds, "bus_gb_per_second": rate})
        if rank == 0:
            print(f"{4 * count:>12} bytes  {1e6 * seconds:10.1f} us  {rate:7.2f} GB/s", flush=True)
    if rank == 0 and os.environ.get("ALLREDUCE_METRICS"):
        Path(os.environ["ALLREDUCE_METRICS"]).write_text(json.dumps(metrics) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
