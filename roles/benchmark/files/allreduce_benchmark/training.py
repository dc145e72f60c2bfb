# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Training throughput of ResNet-50 and ViT-B/16, and what a step's time is spent on."""

from __future__ import annotations

import gc
import math
from argparse import Namespace
from collections.abc import Iterator
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from .arms import Recipe, Trainer, recipes
from .place import Place
from .records import Record, Subject, first_line, rounded
from .resnet import resnet50
from .timing import elapsed
from .vit import VisionTransformer

MODELS = ("resnet50", "vit_b_16")


class TooLarge(Exception):
    """Not even a batch of one fits into the memory of a rank."""


def build(name: str, size: int) -> nn.Module:
    """Return a model with random weights, the same on every rank."""
    torch.manual_seed(1)
    return resnet50() if name == "resnet50" else VisionTransformer(size)


def measure_training(place: Place, options: Namespace) -> Iterator[Record]:
    """Measure each model that is asked for in each way."""
    for model in [one for one in MODELS if one in options.models]:
        for recipe in recipes(place, options):
            case = {"model": model, "arm": recipe.name, "image_size": options.image_size, "ranks": place.world_size}
            subject = Subject("training", "images/s", place.device.type, None, case)
            try:
                yield train(place, options, subject, recipe)
            except TooLarge as error:
                yield subject.not_measured("out_of_memory", str(error))
            forget(place)


def forget(place: Place) -> None:
    """Free what a model held, also what was compiled of it."""
    if hasattr(getattr(torch, "compiler", None), "reset"):  # from PyTorch 2.1
        torch.compiler.reset()
    gc.collect()
    if place.is_cuda:
        torch.cuda.empty_cache()


def train(place: Place, options: Namespace, subject: Subject, recipe: Recipe) -> Record:
    """Measure one model in one way: first what one rank needs for a step by itself, then all of them with their input."""
    size, steps = options.image_size, options.steps
    trainer = Trainer(place, build(subject.case["model"], size), recipe)
    parameters = sum(one.numel() for one in trainer.model.parameters())
    batch = fitting(place, trainer, size)
    resident = trainer.resident(size, batch)
    compiling = choose_compilation(place, trainer, resident, steps)
    compute = step_seconds(place, trainer, resident, steps, options.repeats)
    trainer.distribute()
    exchanged = step_seconds(place, trainer, resident, steps, options.repeats) if place.is_joined else compute
    del resident
    whole, loss = throughput(place, trainer, trainer.batches(size, batch, options.workers), options)
    images = batch * place.world_size
    total = median(whole)
    return subject.measured(
        [images / one for one in whole],
        batch_per_rank=batch,
        parameters=parameters,
        loss=loss if math.isfinite(loss) else None,  # JSON has no other word for a loss that diverged
        step_seconds={
            "total": rounded(total),
            "compute": rounded(compute),
            "communication": rounded(exchanged - compute) if place.is_joined else None,
            "data": rounded(total - exchanged),
        },
        **recipe.words(place),
        **compiling,
    )


def fitting(place: Place, trainer: Trainer, size: int) -> int:
    """Return the batch with which a step fits into the memory of every rank: the one asked for, or half of it, and so on."""
    batch = trainer.recipe.batch
    while batch:
        fits = True
        try:
            trainer.step(*trainer.resident(size, batch))
            place.synchronize()
        except torch.cuda.OutOfMemoryError:
            fits = False
        if all(place.gather(fits)):
            return batch
        trainer.optimizer.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()
        batch //= 2
    raise TooLarge("Not even a batch of one image fits into the memory of every rank.")


def choose_compilation(place: Place, trainer: Trainer, resident: Any, steps: int) -> dict[str, Any]:
    """Try torch.compile where the recipe does, keep it where a step of the slowest rank is faster, and return what was seen."""
    if not trainer.recipe.compiles:
        return {"compiled": False}
    eager = step_seconds(place, trainer, resident, steps, 1)
    trainer.compile(True)
    error = ""
    try:
        trainer.step(*resident)  # compiles
        place.synchronize()
    except Exception as problem:  # noqa: BLE001 - whatever a compiler, a driver or a missing header says
        error = first_line(problem)
    errors = [one for one in place.gather(error) if one]
    if errors:
        trainer.compile(False)
        return {"compiled": False, "compile_error": errors[0]}
    compiled = step_seconds(place, trainer, resident, steps, 1)
    trainer.compile(compiled < eager)
    return {
        "compiled": compiled < eager,
        "eager_step_seconds": rounded(eager),
        "compiled_step_seconds": rounded(compiled),
    }


def step_seconds(place: Place, trainer: Trainer, resident: Any, steps: int, repeats: int) -> float:
    """Return the time of a step on a batch that is on the device already, the slowest rank's, the median of REPEATS blocks."""
    for _step in range(2):
        trainer.step(*resident)
    return median(block(place, lambda: trainer.step(*resident), steps) for _repeat in range(repeats))


def throughput(
    place: Place, trainer: Trainer, batches: Iterator[tuple[Tensor, Tensor]], options: Namespace
) -> tuple[list[float], float]:
    """Return the time of a step with its input, one figure for each block of steps, and the last loss."""
    last: list[Tensor] = []

    def step() -> None:
        last[:] = [trainer.step(*next(batches))]

    for _step in range(options.warmup):
        step()
    found = [block(place, step, options.steps) for _repeat in range(options.repeats)]
    return found, float(last[0])


def block(place: Place, step: Any, steps: int) -> float:
    """Return the time of a step in a block of steps, the slowest rank's."""
    place.meet()
    return place.slowest(elapsed(place, step, steps) / steps)
