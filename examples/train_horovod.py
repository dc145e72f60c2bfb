#!/usr/bin/env python3
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data-parallel training with PyTorch and Horovod, to start your own from: replace `build_data` and `build_model`.

    horovodrun -np 2 -H gpu-1:1,gpu-2:1 /opt/allreduce/envs/main/bin/python train_horovod.py --epochs 2

Runs on GPUs (NCCL) or processors (Gloo), on synthetic data: ten classes of images, each a fixed pattern in noise, so the loss really falls.
Each node keeps the checkpoint, and whoever has the newest gives it to the others, so no shared file system is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import horovod.torch as hvd
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

CLASSES = 10


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small network on a synthetic image data set, with Horovod.")
    add = parser.add_argument
    add("--epochs", type=int, default=4)
    add("--batch-size", type=int, default=64, help="samples per rank and step (default 64)")
    add("--learning-rate", type=float, default=0.02, help="for one rank; grows with the square root of their number")
    add("--samples", type=int, default=4096, help="images in the training set (default 4096)")
    add("--width", type=int, default=16, help="channels of the first layer (default 16)")
    add("--seed", type=int, default=1)
    add("--checkpoint-dir", type=Path, help="directory in which each node keeps the checkpoint (default: none)")
    add("--resume", action="store_true", help="continue from the checkpoint in --checkpoint-dir, if there is one")
    args = parser.parse_args()
    if args.resume and not args.checkpoint_dir:
        parser.error("--resume needs --checkpoint-dir, the directory that holds the checkpoint")
    return args


def say(text: str) -> None:
    """Print once, not once per rank."""
    if hvd.rank() == 0:
        print(text, flush=True)


# --- Data and model: replace these ------------------------------------------------------------------------------------


def build_data(samples: int, seed: int) -> TensorDataset:
    """The training set, the same on every rank."""
    generator = torch.Generator().manual_seed(seed)
    patterns = F.interpolate(torch.randn(CLASSES, 3, 8, 8, generator=generator), size=32, mode="bilinear")
    labels = torch.randint(CLASSES, (samples,), generator=generator)
    return TensorDataset(patterns[labels] + torch.randn(samples, 3, 32, 32, generator=generator), labels)


def build_model(width: int) -> nn.Module:
    """A small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(32 * width, CLASSES),
    )  # fmt: skip


# --- Training ---------------------------------------------------------------------------------------------------------


class Trainer:
    """State of a training: model, optimizer, position."""

    def __init__(self, args: argparse.Namespace, device: torch.device):
        self.args, self.device, self.epoch = args, device, 0
        torch.manual_seed(args.seed)
        self.model = build_model(args.width).to(device)
        rate = args.learning_rate * hvd.size() ** 0.5
        own = torch.optim.SGD(self.model.parameters(), lr=rate, momentum=0.9)
        # Gradients are averaged over the ranks while they are computed. The names tell Horovod which belong together.
        self.optimizer = hvd.DistributedOptimizer(own, named_parameters=self.model.named_parameters())
        data = build_data(args.samples, args.seed)
        self.sampler = DistributedSampler(
            data, num_replicas=hvd.size(), rank=hvd.rank(), seed=args.seed, drop_last=True
        )
        self.loader = DataLoader(data, args.batch_size, sampler=self.sampler, drop_last=True)

    def train_epoch(self) -> float:
        """One epoch; returns its mean loss over all ranks."""
        self.sampler.set_epoch(self.epoch)  # without this, every epoch has the same order
        losses = [self.train_step(images.to(self.device), labels.to(self.device)) for images, labels in self.loader]
        self.epoch += 1
        return hvd.allreduce(torch.stack(losses).mean(), name="loss").item()

    def train_step(self, images: Tensor, labels: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def save(self) -> None:
        """One rank of each node writes, under another name first, so that whatever ends this leaves a whole checkpoint."""
        if self.args.checkpoint_dir and hvd.local_rank() == 0:
            path = self.args.checkpoint_dir / "checkpoint.pt"
            path.parent.mkdir(parents=True, exist_ok=True)
            state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": self.epoch}
            new = path.with_suffix(f".{hvd.rank()}.new")
            with new.open("wb") as out:
                torch.save(state, out)
                out.flush()
                os.fsync(out.fileno())
            new.replace(path)

    def resume(self) -> None:
        """Continue from the newest checkpoint of any node, if there is one."""
        path = self.args.checkpoint_dir / "checkpoint.pt"
        mine = torch.load(path, map_location="cpu", weights_only=True) if path.exists() else None
        have = hvd.allgather_object(mine["epoch"] if mine else -1, name="epochs")
        state = hvd.broadcast_object(mine, root_rank=have.index(max(have)), name="checkpoint")
        if state:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.epoch = state["epoch"]
            say(f"resumed after epoch {self.epoch}")


def main() -> None:
    args = parse_arguments()
    hvd.init()
    gpu = torch.cuda.is_available() and hvd.nccl_built()
    if gpu:
        torch.cuda.set_device(hvd.local_rank())  # before NCCL starts, or every rank opens GPU 0 as well
    device = torch.device("cuda", hvd.local_rank()) if gpu else torch.device("cpu")
    trainer = Trainer(args, device)
    if args.resume:
        trainer.resume()
    hvd.broadcast_parameters(trainer.model.state_dict(), root_rank=0)
    operation = "NCCL" if gpu else "Gloo"
    ranks = f"{hvd.size()} rank{'s' * (hvd.size() != 1)}"
    say(f"{ranks} on {device.type} with {operation}, PyTorch {torch.__version__}")
    losses, began = [], time.perf_counter()
    while trainer.epoch < args.epochs:
        losses.append(trainer.train_epoch())
        trainer.save()
        say(f"epoch {trainer.epoch}/{args.epochs}  loss {losses[-1]:.4f}")
    seconds = time.perf_counter() - began
    samples = len(losses) * len(trainer.loader) * args.batch_size * hvd.size()
    metrics = {
        "world_size": hvd.size(),
        "epochs": trainer.epoch,
        "samples_per_second": samples / seconds,
        "device": device.type,
    }
    if losses:
        metrics.update(loss_first=losses[0], loss_last=losses[-1], losses=losses)
        say(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, {samples / seconds:.0f} samples/s, {ranks}")
    if hvd.rank() == 0 and os.environ.get("ALLREDUCE_METRICS"):
        Path(os.environ["ALLREDUCE_METRICS"]).write_text(json.dumps(metrics) + "\n", encoding="utf-8")
    hvd.shutdown()


if __name__ == "__main__":
    main()
