#!/usr/bin/env python3
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Training with torch.nn.DataParallel: one process for all GPUs of one node, and no launcher. Prefer train_ddp.py.

    python train_dp.py --epochs 2

It trains the small network of train_ddp.py, which lies next to it, on the same data, so that the two can be compared. PyTorch
recommends DistributedDataParallel on one node, too. With DataParallel

* one Python interpreter serves all GPUs, with a thread for each;
* every step copies the model from the first GPU to the others, and the batch from there, too, and gathers the outputs again;
* the first GPU also holds all outputs and the optimizer's state, so it is full before the others are;
* more nodes need another program.

Without a GPU DataParallel only runs the module: one processor, nothing in parallel. On one GPU it does the same.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

try:
    from train_ddp import Net, synthesize
except ModuleNotFoundError:
    sys.exit("train_ddp.py is not next to this script; under playbook train: -e train_files=examples/train_ddp.py")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small network on all GPUs of a node, with DataParallel.")
    add = parser.add_argument
    add("--epochs", type=int, default=4)
    add("--batch-size", type=int, default=64, help="samples per step for each GPU (default 64)")
    add("--learning-rate", type=float, default=0.05, help="for 64 samples; grows with the square root of the batch")
    add("--samples", type=int, default=8192, help="images in the training set (default 8192)")
    add("--width", type=int, default=16, help="channels of the first stage (default 16)")
    add("--seed", type=int, default=1)
    args = parser.parse_args()
    if "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        parser.error(
            "a launcher started several ranks, but this script is one process; use train_ddp.py with a launcher"
        )
    return args


class Trainer:
    """A model on all GPUs of this node, and its data."""

    def __init__(self, args: argparse.Namespace):
        self.gpus = torch.cuda.device_count()
        self.device = torch.device("cuda", 0) if self.gpus else torch.device("cpu")
        torch.manual_seed(args.seed)
        # The module must be on the first GPU, from which each step copies it to the others.
        self.model = nn.DataParallel(Net(args.width).to(self.device))
        # A step's batch is divided among the GPUs, so it has to grow with them; DDP's is each rank's own.
        batch = args.batch_size * max(1, self.gpus)
        training, evaluation = synthesize(args.samples, args.seed, 32)
        if len(training) < batch:
            sys.exit(f"{args.samples} samples do not fill a batch of {batch}; raise --samples or lower --batch-size.")
        pinned = bool(self.gpus)
        self.loader = DataLoader(training, batch, shuffle=True, drop_last=True, pin_memory=pinned)
        self.evaluation = DataLoader(evaluation, batch, pin_memory=pinned)
        rate = args.learning_rate * (batch / 64) ** 0.5
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)

    def describe(self) -> str:
        if self.gpus > 1:
            return f"DataParallel on {self.gpus} GPUs; train_ddp.py with torchrun is the faster way"
        place = "GPU" if self.gpus else "processor"
        return f"one {place}: DataParallel only runs the module, nothing is done in parallel"

    def train_epoch(self) -> float:
        """One epoch; returns its mean loss."""
        self.model.train()
        losses = []
        for images, labels in self.loader:
            self.optimizer.zero_grad(set_to_none=True)
            outputs = self.model(images.to(self.device, non_blocking=True))  # all of them, on the first GPU
            loss = F.cross_entropy(outputs, labels.to(self.device, non_blocking=True))
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses).mean().item()

    @torch.no_grad()
    def evaluate(self) -> float:
        """Share of the evaluation set that is classified rightly."""
        self.model.eval()
        right = [
            (self.model(images.to(self.device)).argmax(1) == labels.to(self.device)).sum()
            for images, labels in self.evaluation
        ]
        return torch.stack(right).sum().item() / len(self.evaluation.dataset)


def main() -> None:
    args = parse_arguments()
    trainer = Trainer(args)
    print(f"{trainer.describe()}, PyTorch {torch.__version__}", flush=True)
    losses, began = [], time.perf_counter()
    for epoch in range(args.epochs):
        losses.append(trainer.train_epoch())
        print(f"epoch {epoch + 1}/{args.epochs}  loss {losses[-1]:.4f}", flush=True)
    seconds = time.perf_counter() - began
    accuracy = trainer.evaluate()
    rate = args.epochs * len(trainer.loader) * trainer.loader.batch_size / seconds
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, accuracy {accuracy:.3f}, {rate:.0f} samples/s", flush=True)
    metrics = {
        "samples_per_second": rate, "accuracy": accuracy, "epochs": args.epochs, "loss_first": losses[0], "loss_last": losses[-1], "losses": losses,
        "world_size": 1, "gpus": trainer.gpus, "device": trainer.device.type,
    }  # fmt: skip
    if os.environ.get("ALLREDUCE_METRICS"):
        Path(os.environ["ALLREDUCE_METRICS"]).write_text(json.dumps(metrics) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
