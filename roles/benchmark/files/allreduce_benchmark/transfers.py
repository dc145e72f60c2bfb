# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies to and from a GPU: with the host's pinned memory, and with the other GPUs of the node."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from itertools import permutations

import torch

from .formulas import gigabytes_per_second
from .place import Place
from .records import Record, Subject
from .timing import attempt, repetitions

BYTES = 1 << 28
NO_GPU = ("no_gpu", "This rank has no GPU to copy to or from.")


def measure_transfers(place: Place, options: Namespace) -> Iterator[Record]:
    """Measure copies between pinned memory of the host and the GPU; all ranks of a node copy at the same time."""
    for name in ("host_to_device", "device_to_host"):
        subject = Subject(name, "GB/s", place.device.type, place.rank, {"bytes": BYTES, "pinned": True})
        yield (
            attempt(subject, lambda: _transfer(place, options, subject))  # noqa: B023 - called at once
            if place.is_cuda
            else subject.not_measured(*NO_GPU)
        )


def _transfer(place: Place, options: Namespace, subject: Subject) -> Record:
    host = torch.empty(BYTES, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(BYTES, dtype=torch.uint8, device=place.device)
    target, source = (there, host) if subject.name == "host_to_device" else (host, there)
    found = repetitions(place, lambda: target.copy_(source, non_blocking=True), options.repeats, options.seconds)
    return subject.measured([gigabytes_per_second(BYTES, one) for one in found])


def measure_peers(place: Place, options: Namespace) -> Iterator[Record]:
    """Measure copies from each GPU of the node to each other, one at a time, by the node's first rank.

    Whether a GPU may read and write another's memory is asked of CUDA, and stands in the case: without it, copies go through the host.
    """
    if place.local_rank:
        return
    count = torch.cuda.device_count() if place.is_cuda else 0
    if count < 2:
        subject = Subject("peer_copy", "GB/s", place.device.type, place.rank)
        yield subject.not_measured(*(("one_gpu", "This node shows one GPU.") if count else NO_GPU))
    for source, target in permutations(range(count), 2):
        case = {
            "from": source, "to": target, "bytes": BYTES,
            "peer_access": torch.cuda.can_device_access_peer(target, source),
        }  # fmt: skip
        subject = Subject("peer_copy", "GB/s", place.device.type, place.rank, case)
        yield attempt(subject, lambda: _peer(options, subject))  # noqa: B023 - called at once


def _peer(options: Namespace, subject: Subject) -> Record:
    """Time on the sending GPU's stream, on which PyTorch enqueues such copies."""
    device = torch.device("cuda", subject.case["from"])
    source = torch.zeros(BYTES, dtype=torch.uint8, device=device)
    target = torch.empty(BYTES, dtype=torch.uint8, device=torch.device("cuda", subject.case["to"]))

    def work() -> object:
        return target.copy_(source, non_blocking=True)

    with torch.cuda.device(device):
        found = repetitions(Place(device), work, options.repeats, options.seconds)
    return subject.measured([gigabytes_per_second(BYTES, one) for one in found])
