#!/usr/bin/env python3
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Model-parallel training with PyTorch: each rank has a stage of the network, and batches pass through all of them.

Runs under torchrun, on GPUs (NCCL) or processors (Gloo), with two ranks or more:

    torchrun --standalone --nproc-per-node=2 train_pipeline.py --epochs 2
    ansible-playbook allreduce.gpu.train -e train_script=train_pipeline.py -e train_files=examples/train_ddp.py

It is for networks that do not fit into one GPU; what fits trains faster with train_ddp.py, which lies next to it and has the data.
A batch is cut into microbatches, so that stages work at the same time: while the second stage has the first microbatch, the
first stage has the second. At the beginning and the end of a step stages wait for each other: of S stages and M microbatches, each is
idle for (S - 1) / (M + S - 1) of it. Tested with PyTorch 2.13.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.utils.data import DataLoader

try:
    from train_ddp import CLASSES, join_ranks, say, synthesize
except ModuleNotFoundError:
    sys.exit("train_ddp.py is not next to this script; under playbook train: -e train_files=examples/train_ddp.py")

SCHEDULES = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a network whose layers are divided among ranks.")
    add = parser.add_argument
    add("--epochs", type=int, default=4)
    add("--batch-size", type=int, default=64, help="samples per step, of all ranks together (default 64)")
    add("--microbatches", type=int, default=8, help="parts of a batch that pass through the stages (default 8)")
    add("--schedule", choices=SCHEDULES, default="1f1b", help="1f1b keeps fewer activations than gpipe (default 1f1b)")
    add("--learning-rate", type=float, default=0.002)
    add("--samples", type=int, default=8192, help="images in the training set (default 8192)")
    add("--width", type=int, default=16, help="channels of the first layers (default 16)")
    add("--blocks", type=int, default=4, help="residual blocks; there are two layers more (default 4)")
    add("--seed", type=int, default=1)
    add("--timeout", type=int, default=300, help="seconds a rank waits for the others (default 300)")
    args = parser.parse_args()
    for name in ("epochs", "batch_size", "microbatches", "samples", "width", "blocks", "timeout"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be 1 or more, not {getattr(args, name)}")
    if args.width % 4:
        parser.error(f"--width must be a multiple of 4, the groups of a normalization, not {args.width}")
    ranks = int(os.environ.get("WORLD_SIZE") or os.environ.get("OMPI_COMM_WORLD_SIZE") or 1)
    if ranks < 2:
        parser.error(
            "one rank has no other stage; start two: torchrun --standalone --nproc-per-node=2 train_pipeline.py"
        )
    if ranks > args.blocks + 2:
        parser.error(f"{ranks} ranks need as many layers, and there are {args.blocks + 2}; raise --blocks")
    if args.microbatches < ranks:
        parser.error(f"--microbatches must be {ranks} or more, so that all stages have work")
    if args.batch_size % args.microbatches:
        parser.error(f"--batch-size must be a multiple of --microbatches, {args.microbatches}")
    return args


# --- Model: replace this ----------------------------------------------------------------------------------------------


class Block(nn.Module):
    """Two convolutions and a shortcut. Batch normalization would see microbatches, and differ with their number."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.GroupNorm(4, outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.GroupNorm(4, outputs),
        )  # fmt: skip
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        return F.relu(self.body(images) + self.shortcut(images))


def build_layers(args: argparse.Namespace) -> list[nn.Module]:
    """All layers in their order; each has one tensor as its input and one as its output."""
    channels = args.width
    layers: list[nn.Module] = [
        nn.Sequential(nn.Conv2d(3, channels, 3, 2, 1, bias=False), nn.GroupNorm(4, channels), nn.ReLU(inplace=True))
    ]
    for number in range(args.blocks):
        wider = number and number in (args.blocks // 3, 2 * args.blocks // 3)
        layers.append(Block(channels, channels * 2 if wider else channels, 2 if wider else 1))
        channels *= 2 if wider else 1
    return [*layers, nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))]


def stage_of(layers: list[nn.Module], number: int, stages: int) -> nn.Sequential:
    """The layers of a stage: neighbours, and of each stage as many, but for one."""
    ends = [len(layers) * one // stages for one in (number, number + 1)]
    return nn.Sequential(*layers[ends[0] : ends[1]])


# --- Training ---------------------------------------------------------------------------------------------------------


class Trainer:
    """This rank's stage, and the data: images enter at the first stage, labels are compared at the last."""

    def __init__(self, args: argparse.Namespace, device: torch.device):
        self.args, self.device = args, device
        self.rank, self.stages = dist.get_rank(), dist.get_world_size()
        self.is_first, self.is_last = self.rank == 0, self.rank == self.stages - 1
        # One seed: all ranks make the same network in main memory, and each moves its own part to its GPU.
        torch.manual_seed(args.seed)
        self.module = stage_of(build_layers(args), self.rank, self.stages).to(device)
        self.schedule = SCHEDULES[args.schedule](self._stage(), args.microbatches, loss_fn=F.cross_entropy)
        # Without a loss there is no way back.
        self.forward = ScheduleGPipe(self._stage(), args.microbatches)
        # The same data in the same order on every rank, although one needs the images and another the labels.
        training, evaluation = synthesize(args.samples, args.seed, 32)
        order = torch.Generator().manual_seed(args.seed)
        pinned = device.type == "cuda"
        options = {"batch_size": args.batch_size, "drop_last": True, "pin_memory": pinned}
        self.loader = DataLoader(training, shuffle=True, generator=order, **options)
        self.evaluation = DataLoader(evaluation, **options)
        if not (len(self.loader) and len(self.evaluation)):
            sys.exit(
                f"{args.samples} samples, and a quarter of them to evaluate, do not fill a batch of {args.batch_size}; "
                "raise --samples or lower --batch-size."
            )
        # Each rank updates its own parameters: gradients stay where they are.
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=args.learning_rate)

    def _stage(self) -> PipelineStage:
        return PipelineStage(self.module, self.rank, self.stages, self.device)

    def train_epoch(self) -> float:
        """One epoch; returns its mean loss, which the last stage knows, on every rank."""
        self.module.train()
        losses: list[Tensor] = []
        for images, labels in self.loader:
            self.optimizer.zero_grad(set_to_none=True)
            found: list[Tensor] = []  # the loss of each microbatch
            inputs = (images.to(self.device, non_blocking=True),) if self.is_first else ()
            goal = {"target": labels.to(self.device, non_blocking=True), "losses": found} if self.is_last else {}
            self.schedule.step(*inputs, **goal)
            self.optimizer.step()
            losses += [one.detach() for one in found]
        return self._of_last(torch.stack(losses).mean() if losses else torch.zeros(()))

    @torch.no_grad()
    def evaluate(self) -> float:
        """Share of the evaluation set, without its last images that fill no batch, that is classified rightly."""
        self.module.eval()
        right = torch.zeros(())
        for images, labels in self.evaluation:
            outputs = self.forward.step(*((images.to(self.device),) if self.is_first else ()))
            if self.is_last:
                right += (outputs.argmax(1).cpu() == labels).sum()
        return self._of_last(right / (len(self.evaluation) * self.args.batch_size))

    def _of_last(self, value: Tensor) -> float:
        """Give all ranks the number that the last stage has."""
        told = value.to(self.device, torch.float32)
        dist.broadcast(told, self.stages - 1)
        return told.item()


@record  # torchrun then knows the exception of a rank that failed, not only its exit code
def main() -> None:
    args = parse_arguments()
    device = join_ranks(args.timeout)
    trainer = Trainer(args, device)
    parameters: list = [None] * trainer.stages
    dist.all_gather_object(parameters, sum(one.numel() for one in trainer.module.parameters()))
    say(
        f"{trainer.stages} stages on {device.type} with {dist.get_backend()}, of {' + '.join(map(str, parameters))} parameters"
    )
    losses, began = [], time.perf_counter()
    for epoch in range(args.epochs):
        losses.append(trainer.train_epoch())
        say(f"epoch {epoch + 1}/{args.epochs}  loss {losses[-1]:.4f}")
    rate = args.epochs * len(trainer.loader) * args.batch_size / (time.perf_counter() - began)
    accuracy = trainer.evaluate()
    say(
        f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, accuracy {accuracy:.3f}, {rate:.0f} samples/s, {trainer.stages} stages"
    )
    metrics = {
        "samples_per_second": rate, "accuracy": accuracy, "epochs": args.epochs, "loss_first": losses[0], "loss_last": losses[-1], "losses": losses,
        "world_size": trainer.stages, "stages": trainer.stages, "parameters": parameters, "device": device.type, "backend": dist.get_backend(),
    }  # fmt: skip
    if dist.get_rank() == 0 and os.environ.get("ALLREDUCE_METRICS"):
        Path(os.environ["ALLREDUCE_METRICS"]).write_text(json.dumps(metrics) + "\n", encoding="utf-8")
    # The last one to let go of the group has to be the next line, which waits for its threads without the interpreter's lock.
    del trainer
    gc.collect()
    # Not after an error: a rank that failed must end at once, so that torchrun and the other ranks notice.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
