# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collectives over all ranks by size: how fast the links are between the devices."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from statistics import median

import torch
import torch.distributed as dist

from .formulas import bus_factor, gigabytes_per_second
from .place import Place, hold
from .records import Record, Subject
from .timing import repetitions

OPERATIONS = ("all_reduce", "all_gather")
KIB, MIB = 1 << 10, 1 << 20
SIZES = {"cuda": (64 * KIB, MIB, 16 * MIB, 256 * MIB, 1024 * MIB), "cpu": (64 * KIB, MIB, 16 * MIB)}


def measure_collectives(place: Place, options: Namespace) -> Iterator[Record]:
    """Measure the bus bandwidth of each operation and size, as nccl-tests define it."""
    for operation in OPERATIONS:
        for size in SIZES[place.device.type]:
            subject = Subject(operation, "GB/s", place.device.type, None, {"bytes": size, "ranks": place.world_size})
            if not place.is_joined:
                yield subject.not_measured(
                    "one_rank", "One rank has no other to exchange with; start several with torchrun."
                )
                continue
            # Parts of equal size: the rest is not gathered.
            moved = size if operation == "all_reduce" else size - size % (4 * place.world_size)
            work = prepare(place, operation, moved)
            found = repetitions(place, work, options.repeats, options.seconds, together=True)
            factor = bus_factor(operation, place.world_size)
            yield subject.measured(
                [gigabytes_per_second(moved, one) * factor for one in found],
                seconds=median(found),
                backend=dist.get_backend(),
                interconnect="node" if place.local_world_size == place.world_size else "network",
            )


def prepare(place: Place, operation: str, size: int) -> Callable[[], object]:
    """Return the function of one turn. SIZE is that of the array which a rank has afterwards."""
    data = hold(torch.zeros(size // 4, device=place.device))
    if operation == "all_reduce":
        return lambda: dist.all_reduce(data)
    part = hold(torch.zeros(len(data) // place.world_size, device=place.device))
    if place.is_cuda:
        return lambda: dist.all_gather_into_tensor(data, part)
    parts = [hold(one) for one in data.chunk(place.world_size)]
    return lambda: dist.all_gather(parts, part)
