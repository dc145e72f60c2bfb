# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two ways to train the same model on the same images: the textbook loop, and one that keeps the GPU busy."""

from __future__ import annotations

import importlib.util
from argparse import Namespace
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from . import images
from .place import Place

FULL = torch.float32


@dataclass(frozen=True)
class Recipe:
    """The way to train. compiles: whether torch.compile is tried; it is kept where it is faster."""

    name: str
    batch: int
    tuned: bool = False
    precision: torch.dtype = FULL
    compiles: bool = False
    graphs: bool = False  # CUDA graphs, by torch.compile

    def words(self, place: Place) -> dict[str, Any]:
        """Return the document's entry of the recipe."""
        return {
            "precision": str(self.precision).rpartition(".")[2],
            "memory_format": "channels_last" if self.tuned else "contiguous",
            "input": "pinned_ahead" if self.tuned and place.is_cuda else "when_needed",
            "cuda_graphs": self.graphs,
        }


def recipes(place: Place, options: Namespace) -> list[Recipe]:
    """Return the plain loop and the tuned one."""
    tuned = Recipe(
        "tuned",
        options.tuned_batch_size,
        tuned=True,
        precision=tuned_precision(place, options.precision),
        compiles=options.compile == "on" or (options.compile == "auto" and may_compile(place)),
        graphs=options.cuda_graphs and place.is_cuda,
    )
    return [one for one in (Recipe("plain", options.batch_size), tuned) if one.name in options.arms]


def tuned_precision(place: Place, wanted: str) -> torch.dtype:
    """Return the type for autocast: bf16 where it is native, else fp16; on processors full precision, unless asked for."""
    if wanted != "auto":
        return {"fp32": FULL, "bf16": torch.bfloat16, "fp16": torch.float16}[wanted]
    if not place.is_cuda:
        return FULL
    return torch.bfloat16 if torch.cuda.get_device_capability(place.device) >= (8, 0) else torch.float16


def may_compile(place: Place) -> bool:
    """Tell whether torch.compile can work on a GPU: Triton begins at compute capability 7.0."""
    if not place.is_cuda or importlib.util.find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(place.device) >= (7, 0)


def gradient_scaler() -> Any:
    """Return the scaler that keeps the gradients of fp16 from vanishing; PyTorch 2.3 gave it another place."""
    return torch.amp.GradScaler("cuda") if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()


class Trainer:
    """One model in training by one recipe. ``model`` is alone until ``distribute``."""

    def __init__(self, place: Place, model: nn.Module, recipe: Recipe):
        self.place, self.recipe = place, recipe
        torch.backends.cudnn.benchmark = recipe.tuned  # the fastest of its algorithms, which the first steps find out
        memory = torch.channels_last if recipe.tuned else torch.contiguous_format
        self.model = model.to(place.device, memory_format=memory).train()
        self.forward: Any = self.model
        self._compiled_model: Any = None
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
        self.scaler = gradient_scaler() if recipe.precision == torch.float16 and place.is_cuda else None

    def step(self, pixels: Tensor, labels: Tensor) -> Tensor:
        """Train on one batch; returns the loss, which may not be known yet."""
        self.optimizer.zero_grad(set_to_none=True)
        mixed = self.recipe.precision != FULL
        with torch.autocast(self.place.device.type, self.recipe.precision) if mixed else nullcontext():
            loss = F.cross_entropy(self.forward(pixels), labels)
        if self.scaler:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            loss.backward()
            self.optimizer.step()
        if not self.recipe.tuned:
            loss.item()  # as textbook loops do to sum up the loss that they print: the device has to finish each step
        return loss.detach()

    def compile(self, is_compiled: bool) -> None:
        """Use torch.compile, or do not any more."""
        if is_compiled and self._compiled_model is None:
            self._compiled_model = self._compiled(self.model)
        self.forward = self._compiled_model if is_compiled else self.model

    def distribute(self) -> None:
        """Average gradients over all ranks from now on."""
        if not self.place.is_joined:
            return
        devices = [self.place.device.index] if self.place.is_cuda else None
        distributed = DistributedDataParallel(self.model, device_ids=devices, gradient_as_bucket_view=self.recipe.tuned)
        # What is compiled as a whole would exchange its gradients at the end; here, DDP cuts it so that they travel meanwhile.
        self.forward = distributed if self.forward is self.model else self._compiled(distributed)

    def resident(self, size: int, batch: int) -> tuple[Tensor, Tensor]:
        """Return a batch that lies on the device already, in the form that this recipe's input has."""
        source = images.loader(self.place, size, batch, 0, pinned=self.recipe.tuned)
        return next(self._input(source))

    def batches(self, size: int, batch: int, workers: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield batches without end."""
        return self._input(images.loader(self.place, size, batch, workers, pinned=self.recipe.tuned))

    def _input(self, source: Any) -> Iterator[tuple[Tensor, Tensor]]:
        return (
            images.ahead(self.place, source, self.recipe.precision)
            if self.recipe.tuned
            else images.plain(self.place, source)
        )

    def _compiled(self, model: nn.Module) -> Any:
        return torch.compile(model, mode="reduce-overhead" if self.recipe.graphs else "default")
