# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images to train on, made from a seed, and two ways to bring them to the device."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from .place import Place

CLASSES = 1000
KEPT = 128  # images that differ; more would only need more memory
LENGTH = 1 << 16  # or some batches of every rank, where that is more
BATCHES = 8
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, which every reference text normalises by


class Images(Dataset):
    """Images of random pixels with random classes: bytes, or normalised in full precision as in a textbook loop."""

    def __init__(self, size: int, length: int, normalised: bool):
        chance = torch.Generator().manual_seed(1)
        self.pixels = torch.randint(0, 256, (KEPT, 3, size, size), dtype=torch.uint8, generator=chance)
        self.classes = torch.randint(0, CLASSES, (KEPT,), generator=chance)
        self.length = length
        self.statistics = statistics(torch.device("cpu"), torch.float32) if normalised else None

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        pixels, label = self.pixels[index % KEPT], self.classes[index % KEPT]
        return (normalise(pixels, self.statistics) if self.statistics is not None else pixels), label


def statistics(device: torch.device, kind: torch.dtype) -> Tensor:
    """Return mean and deviation of ImageNet, on a device."""
    return torch.tensor([MEAN, DEVIATION], device=device, dtype=kind).view(2, 3, 1, 1)


def normalise(pixels: Tensor, known: Tensor) -> Tensor:
    """Return bytes of pixels as numbers around zero, in the memory format that they have."""
    return (pixels.to(known.dtype) / 255 - known[0]) / known[1]


def loader(place: Place, size: int, batch: int, workers: int, pinned: bool) -> DataLoader:
    """Return a loader of this rank's part; with pinned memory, of bytes."""
    images = Images(size, max(LENGTH, BATCHES * batch * place.world_size), normalised=not pinned)
    sampler: DistributedSampler = DistributedSampler(images, place.world_size, place.rank, shuffle=True, drop_last=True)
    return DataLoader(
        images,
        batch,
        sampler=sampler,
        num_workers=workers,
        pin_memory=pinned and place.is_cuda,
        persistent_workers=workers > 0,
        drop_last=True,
    )


def plain(place: Place, batches: DataLoader) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield endless batches as a textbook loop does: each is copied when it is needed, while the device waits."""
    while True:
        for images, labels in batches:
            yield images.to(place.device), labels.to(place.device)


def ahead(place: Place, batches: DataLoader, kind: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches without end, each copied and normalised on a stream of its own while the device works on the one before."""
    known = statistics(place.device, kind)
    if not place.is_cuda:
        while True:
            for images, labels in batches:
                yield normalise(images.contiguous(memory_format=torch.channels_last), known), labels
    stream = torch.cuda.Stream(place.device)
    stream.wait_stream(torch.cuda.current_stream(place.device))

    def fetch(source: Iterator[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        images, labels = next(source)
        with torch.cuda.stream(stream):
            images = images.to(place.device, non_blocking=True).contiguous(memory_format=torch.channels_last)
            return normalise(images, known), labels.to(place.device, non_blocking=True)

    endless = (batch for epoch in repeat(batches) for batch in epoch)
    coming = fetch(endless)
    while True:
        current = torch.cuda.current_stream(place.device)
        current.wait_stream(stream)
        for tensor in coming:
            tensor.record_stream(current)  # or its memory is given to the next batch while this one is in use
        ready, coming = coming, fetch(endless)
        yield ready
