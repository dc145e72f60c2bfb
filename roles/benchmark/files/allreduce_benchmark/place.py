# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The place of a rank: its device, and what it exchanges with the other ranks in addition to the measurements."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

# Before ranks join, or it keeps their group, and threads of Gloo's, until the interpreter ends (pytorch/pytorch, issue 190489).
import torch.distributed.nn

# The last tensors that collectives were given: PyTorch before 2.8 waits for Gloo's threads with the interpreter's lock held,
# and a thread that drops the last reference of a tensor waits for that lock (pytorch/pytorch, issue 56297).
held: deque[torch.Tensor] = deque(maxlen=64)


def hold(tensor: torch.Tensor) -> torch.Tensor:
    """Keep a tensor that a collective works on."""
    held.append(tensor)
    return tensor


@dataclass
class Place:
    """The place of one rank. control: the group for what is not a measurement, on processors."""

    device: torch.device
    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1
    control: Any = None

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def is_joined(self) -> bool:
        """Return True if there are other ranks."""
        return self.world_size > 1

    def synchronize(self) -> None:
        """Wait until the device has done what it was given."""
        if self.is_cuda:
            torch.cuda.synchronize(self.device)

    def meet(self) -> None:
        """Wait for the device, then for the other ranks."""
        self.synchronize()
        if self.is_joined:
            dist.barrier(group=self.control)

    def gather(self, value: Any) -> list[Any]:
        """Return a JSON value of every rank, by rank."""
        if not self.is_joined:
            return [value]
        data = torch.tensor(list(json.dumps(value).encode()), dtype=torch.uint8)
        sizes = [int(one) for one in self._exchange(torch.tensor([len(data)]))]
        padded = torch.zeros(max(sizes), dtype=torch.uint8)
        padded[: len(data)] = data
        parts = self._exchange(padded)
        return [json.loads(bytes(part[:size].tolist())) for part, size in zip(parts, sizes)]  # noqa: B905 - Python 3.10

    def slowest(self, seconds: float) -> float:
        """Return the longest time of all ranks."""
        return max(self.gather(seconds))

    def _exchange(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        parts = [hold(torch.zeros_like(tensor)) for _rank in range(self.world_size)]
        dist.all_gather(parts, hold(tensor), group=self.control)
        return parts


def join(kind: str, timeout: int) -> Place:
    """Return the place of this process, among other ranks where torchrun or mpirun started several. kind: auto, cuda or cpu."""
    local_rank, size = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = choose_device(kind, local_rank)
    place = Place(device, int(os.environ.get("RANK", 0)), size, local_rank, int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
    if place.is_cuda:
        torch.cuda.set_device(device)  # before NCCL starts, or every rank opens GPU 0 as well
    if place.is_joined:
        wait = timedelta(seconds=timeout)
        dist.init_process_group("nccl" if place.is_cuda else "gloo", timeout=wait)
        place.control = dist.new_group(backend="gloo", timeout=wait)
    return place


def choose_device(kind: str, local_rank: int) -> torch.device:
    """Return the device of a rank; one that is asked for and absent ends the program, and is never replaced."""
    if kind == "cpu" or (kind == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        sys.exit(
            f"--device cuda: PyTorch {torch.__version__} sees no GPU here; look at nvidia-smi, or measure with --device cpu."
        )
    if local_rank >= torch.cuda.device_count():
        sys.exit(
            f"Local rank {local_rank} has no GPU: this node shows {torch.cuda.device_count()}; start so many ranks or fewer."
        )
    return torch.device("cuda", local_rank)


def leave(place: Place) -> None:
    """Leave the other ranks, at the end of a run without an error: one that failed must end at once, so that all notice."""
    if place.is_joined:
        dist.barrier(group=place.control)
        dist.destroy_process_group()
