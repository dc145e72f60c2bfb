#!/usr/bin/env python3
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data-parallel training with PyTorch DDP, to start your own from: replace `build_data` and `Net`.

Runs under torchrun, on GPUs (NCCL, mixed precision) or processors (Gloo):

    torchrun --standalone --nproc-per-node=2 train_ddp.py --epochs 2
    ansible-playbook allreduce.gpu.train -e train_script=train_ddp.py

The data set is made from a seed: ten classes of 3x32x32 images, each a fixed pattern that is shifted, scaled and
buried in noise, so nothing is downloaded and the loss really falls. Needs PyTorch 2.0 or later and nothing else.

    torchrun --standalone --nproc-per-node=4 train_ddp.py --data /scratch/imagenet --workers 8 --model resnet50

Images of a folder are read by image_folder.py, which needs Pillow, those of CIFAR-10 by cifar10.py. ResNet-50 and ViT-B/16
are those that playbook benchmark measures (roles/benchmark/files/allreduce_benchmark). Copied alone, this script finds none of
them: put what you need next to it, as `train_files` does.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import itertools
import json
import math
import os
import random
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

# Its functions have the group of all ranks as a default. DistributedDataParallel would import it when ranks have joined: it would keep the
# group until the interpreter ends, and a thread of Gloo's that is still there can abort a rank that is done (pytorch/pytorch, issue 190489).
import torch.distributed.nn
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

CLASSES = 10
MODELS = ("small", "resnet50", "vit_b_16")
CIFAR10 = "cifar-10-batches-py"
BENCHMARK = "roles/benchmark/files"  # in the collection, where this script is in examples


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train an image classifier on several GPUs or nodes.")
    add = parser.add_argument
    add("--epochs", type=int, default=4)
    add("--batch-size", type=int, default=64, help="samples per rank and step (default 64)")
    add("--accumulate", type=int, default=1, help="steps whose gradients are summed before an update (default 1)")
    add("--learning-rate", type=float, default=0.05, help="for 64 samples; grows with the square root of the batch")
    add("--model", choices=MODELS, default="small", help="small: a residual network for the synthetic data (default)")
    add("--data", type=Path, help="directory of images: one for each class, or CIFAR-10's (default: synthetic data)")
    add("--image-size", type=int, help="pixels of a side (default 32, with a directory for each class 224)")
    add("--samples", type=int, default=8192, help="images in the synthetic training set (default 8192)")
    add("--width", type=int, default=16, help="channels of the first stage of the small model (default 16)")
    add("--workers", type=int, default=0, help="data loading processes per rank (default 0)")
    add("--seed", type=int, default=1)
    add("--amp", choices=["auto", "bf16", "fp16", "off"], default="auto", help="auto: on GPUs, bf16 where it is native")
    add("--checkpoint-dir", type=Path, help="directory in which each node keeps the checkpoint (default: none)")
    add("--checkpoint-every", type=int, default=0, help="steps between checkpoints; also one after each epoch")
    add("--resume", action="store_true", help="continue from the checkpoint in --checkpoint-dir, if there is one")
    add("--warmup-steps", type=int, default=5, help="first steps, which the throughput leaves out (default 5)")
    add("--timeout", type=int, default=300, help="seconds a rank waits for the others (default 300)")
    args = parser.parse_args()
    args.image_size = args.image_size or (224 if args.data and not (args.data / CIFAR10).is_dir() else 32)
    for name in ("epochs", "batch_size", "accumulate", "image_size", "samples", "width", "timeout"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be 1 or more, not {getattr(args, name)}")
    if args.model == "vit_b_16" and args.image_size % 16:
        parser.error(f"--image-size must be a multiple of 16 for vit_b_16, not {args.image_size}")
    if args.resume and not args.checkpoint_dir:
        parser.error("--resume needs --checkpoint-dir, the directory that holds the checkpoint")
    return args


# --- Ranks ------------------------------------------------------------------------------------------------------------


def join_ranks(timeout: int) -> torch.device:
    """Join the process group; returns the device of this rank."""
    # Open MPI has names of its own; MASTER_ADDR and MASTER_PORT are given with -x.
    for name, given in {"RANK": "RANK", "WORLD_SIZE": "SIZE", "LOCAL_RANK": "LOCAL_RANK"}.items():
        if f"OMPI_COMM_WORLD_{given}" in os.environ:
            os.environ.setdefault(name, os.environ[f"OMPI_COMM_WORLD_{given}"])
    if "RANK" not in os.environ:
        sys.exit(
            "RANK is not set: start this script with torchrun, for example torchrun --nproc-per-node=1 train_ddp.py"
        )
    local_rank = int(os.environ["LOCAL_RANK"])
    if not torch.cuda.is_available():
        dist.init_process_group("gloo", timeout=timedelta(seconds=timeout))
        return torch.device("cpu")
    if local_rank >= torch.cuda.device_count():
        sys.exit(
            f"Local rank {local_rank} has no GPU: this node shows {torch.cuda.device_count()}; "
            "set --nproc-per-node to that number or fewer."
        )
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)  # before NCCL starts, or every rank opens GPU 0 as well
    dist.init_process_group("nccl", timeout=timedelta(seconds=timeout))
    return device


# The last tensors that collectives were given: PyTorch before 2.8 waits for Gloo's threads with the interpreter's lock held,
# and a thread that drops the last reference of a tensor waits for that lock (pytorch/pytorch, issue 56297).
held: deque[Tensor] = deque(maxlen=64)


def sum_over_ranks(tensor: Tensor) -> None:
    held.append(tensor)
    dist.all_reduce(tensor)


def mean_over_ranks(value: float | list[float] | Tensor, device: torch.device) -> Any:
    """Return the mean of a number, or of each number of a list that is as long on every rank."""
    total = torch.as_tensor(
        value, dtype=torch.float64 if device.type == "cpu" else torch.float32, device=device
    ).clone()
    sum_over_ranks(total)
    return (total / dist.get_world_size()).tolist()


def say(text: str) -> None:
    """Print once, not once per rank."""
    if dist.get_rank() == 0:
        print(text, flush=True)


class Stop:
    """SIGTERM, as from a scheduler: noted, until all ranks can agree on a step after which they save and end."""

    def __init__(self, device: torch.device, agree: bool):
        # A rank that saves nothing ends at once.
        self.device, self.agree, self.asked = device, agree, False
        if agree:
            signal.signal(signal.SIGTERM, self._note)

    def _note(self, number: int, frame: object) -> None:
        self.asked = True

    def agreed(self) -> bool:
        """Tell whether any rank was asked to stop; the same answer on every rank."""
        return self.agree and mean_over_ranks(float(self.asked), self.device) > 0


class Stopped(Exception):
    """All ranks were asked to end, and the checkpoint is there."""


def beside(module: str, path: str) -> ModuleType:
    """Import a module that lies next to this script; PATH is where the collection has it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        sys.exit(f"{Path(path).name} is not next to this script; under playbook train: -e train_files={path}")


# --- Data and model: replace these ------------------------------------------------------------------------------------


def build_data(args: argparse.Namespace) -> tuple[Dataset, Dataset, int]:
    """(training set, evaluation set, number of classes), the same on every rank."""
    if not args.data:
        return *synthesize(args.samples, args.seed, args.image_size), CLASSES
    name = "cifar10" if (args.data / CIFAR10).is_dir() else "image_folder"
    images = beside(name, f"examples/{name}.py")
    folder = images.read_folder(args.data)
    digests: list = [None] * dist.get_world_size()
    dist.all_gather_object(digests, folder.digest())
    other = [str(rank) for rank, digest in enumerate(digests) if digest != digests[0]]
    if other:
        sys.exit(f"Below {args.data}, rank {', '.join(other)} has other images than rank 0; stage the data set again.")
    training, evaluation = (images.Images(part, args.image_size, part is folder.training) for part in folder[1:])
    return training, evaluation, len(folder.classes)


def synthesize(samples: int, seed: int, size: int) -> tuple[Dataset, Dataset]:
    """(training set, evaluation set) of images that are made from the seed."""
    generator = torch.Generator().manual_seed(seed)
    patterns = F.interpolate(torch.randn(CLASSES, 3, 8, 8, generator=generator), size=size, mode="bilinear")

    def draw(count: int) -> TensorDataset:
        labels = torch.randint(CLASSES, (count,), generator=generator)
        shifts = torch.randint(-4, 5, (count, 2), generator=generator).tolist()
        gains = 0.6 + 0.8 * torch.rand(count, 1, 1, 1, generator=generator)
        noise = torch.randn(count, 3, size, size, generator=generator)
        shifted = [patterns[labels[index]].roll(shifts[index], (1, 2)) for index in range(count)]
        return TensorDataset(torch.stack(shifted) * gains + 1.5 * noise, labels)

    return draw(samples), draw(max(CLASSES, samples // 4))


def build_model(args: argparse.Namespace, classes: int) -> nn.Module:
    if args.model == "small":
        return Net(args.width, classes)
    # Under role train it lies next to this script, elsewhere where the collection has it.
    sys.path.append(str(Path(__file__).resolve().parents[1] / BENCHMARK))
    if args.model == "resnet50":
        return beside("allreduce_benchmark.resnet", f"{BENCHMARK}/allreduce_benchmark").resnet50(classes)
    vit = beside("allreduce_benchmark.vit", f"{BENCHMARK}/allreduce_benchmark")
    return vit.VisionTransformer(args.image_size, classes)


class Block(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        return F.relu(self.body(images) + self.shortcut(images))


class Net(nn.Module):
    """A small residual network."""

    def __init__(self, width: int, classes: int = CLASSES):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        self.stages = nn.Sequential(Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2))
        self.head = nn.Linear(4 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.stages(self.stem(images)).mean((2, 3)))


# --- Training ---------------------------------------------------------------------------------------------------------


class Sampler(DistributedSampler):
    """This rank's samples of an epoch, without the first ones, which a resumed epoch has done."""

    done = 0

    def __iter__(self) -> Iterator[int]:
        return itertools.islice(super().__iter__(), self.done, None)


@contextlib.contextmanager
def reading(loader: DataLoader) -> Iterator[Iterator]:
    """The batches of LOADER. Its workers end with this: at the end of a rank that failed, it would wait for them for ever."""
    # Workers inherit this: a SIGTERM to the whole run is for the rank, which saves first and needs their batches until then.
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    batches = iter(loader)
    signal.pthread_sigmask(signal.SIG_SETMASK, heard)
    try:
        yield batches
    finally:
        if loader.num_workers:
            batches._shutdown_workers()  # also what PyTorch does where it drops the iterator; there is no public name


class Trainer:
    """State of a training: model, optimizer, position. Everything a checkpoint holds, and how to go on."""

    def __init__(self, args: argparse.Namespace, device: torch.device):
        self.args, self.device = args, device
        # One seed for the weights; DDP also copies rank 0's. Each rank then draws numbers of its own.
        torch.manual_seed(args.seed)
        training, evaluation, classes = build_data(args)
        net = build_model(args, classes).to(device)
        seed_everything(args.seed + dist.get_rank())
        self.model = DistributedDataParallel(net, device_ids=[device.index] if device.type == "cuda" else None)
        self.samples = len(training)
        self.sampler = Sampler(training, seed=args.seed, drop_last=True)
        options = {"batch_size": args.batch_size, "num_workers": args.workers, "pin_memory": device.type == "cuda"}
        self.loader = DataLoader(training, sampler=self.sampler, drop_last=True, **options)
        if len(self.loader) == 0:
            sys.exit(
                f"{self.samples} samples do not fill a batch of {args.batch_size * dist.get_world_size()}; "
                f"{'' if args.data else 'raise --samples or '}lower --batch-size."
            )
        # No padding with repeated samples here, so that accuracy counts each image once.
        mine = range(dist.get_rank(), len(evaluation), dist.get_world_size())
        self.evaluation = DataLoader(torch.utils.data.Subset(evaluation, mine), **options)
        together = args.batch_size * args.accumulate * dist.get_world_size()
        rate = args.learning_rate * (together / 64) ** 0.5
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
        self.precision = choose_precision(args.amp, device)
        # fp16 alone has so small a range that gradients vanish without scaling.
        self.scaler = torch.cuda.amp.GradScaler() if self.precision is torch.float16 else None
        self.epoch, self.step = 0, 0  # the next step to do
        self.losses: list[float] = []  # one per step of this process
        self.clock = Clock(args.warmup_steps, device)
        self.stop = Stop(device, bool(args.checkpoint_dir))

    def train(self) -> None:
        while self.epoch < self.args.epochs:
            loss = self.train_epoch()
            accuracy = self.evaluate()
            self.epoch, self.step = self.epoch + 1, 0
            self.save()
            if self.stop.agreed():
                raise Stopped(f"epoch {self.epoch + 1}, step 0")
            say(f"epoch {self.epoch}/{self.args.epochs}  loss {loss:.4f}  accuracy {accuracy:.3f}  {self.clock}")

    def train_epoch(self) -> float:
        """One epoch, or what is left of it after a resume; returns the mean loss over it and all ranks."""
        self.model.train()
        # Without this, every epoch has the same order.
        self.sampler.set_epoch(self.epoch)
        # A resumed epoch draws the same order and passes over what was done.
        self.sampler.done = self.step * self.args.batch_size
        first = len(self.losses)
        self.clock.start()
        with reading(self.loader) as batches:
            for index, (images, labels) in enumerate(batches, self.step):
                self.train_batch(index, images, labels)
        self.clock.stop()
        return mean_over_ranks(sum(self.losses[first:]) / max(1, len(self.losses) - first), self.device)

    def train_batch(self, index: int, images: Tensor, labels: Tensor) -> None:
        """Do step INDEX of the epoch, and save where that is due."""
        last = index + 1 == len(self.loader)
        update = last or (index + 1) % self.args.accumulate == 0
        # The last update of an epoch may be of fewer steps.
        steps = min(self.args.accumulate, len(self.loader) - index + index % self.args.accumulate)
        there = (one.to(self.device, non_blocking=True) for one in (images, labels))
        self.losses.append(self.train_step(*there, steps, update))
        self.clock.count(len(labels) * dist.get_world_size())
        self.step = index + 1
        if not update or last:
            return
        stopping = self.stop.agreed()
        if stopping or (self.args.checkpoint_every and self.step % self.args.checkpoint_every == 0):
            self.clock.stop()
            self.save()
            if stopping:
                raise Stopped(f"epoch {self.epoch + 1}, step {self.step}")
            self.clock.start()

    def train_step(self, images: Tensor, labels: Tensor, steps: int, update: bool) -> float:
        """Compute and add the gradients of one of STEPS steps, and use them with the last of these; returns the loss."""
        # Gradients travel only with the step that uses them.
        with contextlib.nullcontext() if update else self.model.no_sync():
            with torch.autocast(self.device.type, self.precision, enabled=self.precision is not None):
                loss = F.cross_entropy(self.model(images), labels)
            scaled = loss / steps
            (self.scaler.scale(scaled) if self.scaler else scaled).backward()
        if update:
            if self.scaler:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        value = loss.item()
        if math.isnan(value):
            sys.exit(
                f"The loss is not a number in epoch {self.epoch + 1}, step {self.step + 1}; lower --learning-rate."
            )
        return value

    @torch.no_grad()
    def evaluate(self) -> float:
        """Share of the evaluation set, over all ranks, that is classified rightly."""
        self.model.eval()
        # The running statistics of batch normalization differ between ranks; rank 0's are the checkpoint's.
        for buffer in self.model.buffers():
            held.append(buffer)
            dist.broadcast(buffer, 0)
        counts = torch.zeros(2, device=self.device)
        with reading(self.evaluation) as batches:
            for images, labels in batches:
                # .module: the ranks may have different numbers of batches, and DDP's buffers are not wanted here.
                guess = self.model.module(images.to(self.device)).argmax(1)
                counts += torch.tensor([(guess == labels.to(self.device)).sum(), len(labels)], device=self.device)
        sum_over_ranks(counts)
        return (counts[0] / counts[1]).item()

    # Checkpoints: one rank of each node writes, and whoever has the newest gives it to the others. So no shared file system is
    # needed, and the loss of a node loses none; on a shared one, they all write the same.

    def save(self) -> None:
        if not self.args.checkpoint_dir:
            return
        random_states: list = [None] * dist.get_world_size()
        dist.all_gather_object(random_states, random_state(self.device))
        if os.environ["LOCAL_RANK"] == "0":
            state = {
                "model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict(),
                "scaler": self.scaler.state_dict() if self.scaler else None, "epoch": self.epoch, "step": self.step,
                "random_states": random_states, "batch": self.args.batch_size, "samples": self.samples,
                "network": self.args.model,
            }  # fmt: skip
            path = self.args.checkpoint_dir / "checkpoint.pt"
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, path.with_suffix(f".{dist.get_rank()}.new"), state)

    def resume(self) -> str | None:
        """Continue from the checkpoint; returns where that is, None without a checkpoint."""
        path = self.args.checkpoint_dir / "checkpoint.pt"
        mine = torch.load(path, map_location="cpu", weights_only=True) if path.exists() else None
        have: list = [None] * dist.get_world_size()
        dist.all_gather_object(have, (mine["epoch"], mine["step"]) if mine else (-1, -1))
        found = [mine]
        dist.broadcast_object_list(
            found, src=have.index(max(have)), device=self.device if self.device.type == "cuda" else None
        )
        state = found[0]
        if state is None:
            say(f"no checkpoint {path}, starting from the beginning")
            return None
        if state.get("network", "small") != self.args.model:
            sys.exit(
                f"The checkpoint is of model {state['network']}, not {self.args.model}; give it another directory."
            )
        self.model.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scaler and state["scaler"]:
            self.scaler.load_state_dict(state["scaler"])
        self.epoch, self.step = state["epoch"], state["step"]
        same = (len(state["random_states"]), state["batch"], state["samples"]) == (
            dist.get_world_size(), self.args.batch_size, self.samples)  # fmt: skip
        if same:
            set_random_state(state["random_states"][dist.get_rank()], self.device)
        else:
            say("the checkpoint was written with other ranks, batches or samples: its epoch begins again")
            self.step = 0
        place = f"epoch {self.epoch + 1}, step {self.step}"
        say(f"resumed at {place}")
        return place


class Clock:
    """Throughput over all ranks, from barrier to barrier, without the first steps."""

    def __init__(self, warmup: int, device: torch.device):
        self.warmup, self.device = warmup, device
        self.steps, self.samples, self.seconds = 0, 0, 0.0
        self._since: float | None = None

    def start(self) -> None:
        if self.steps >= self.warmup:
            self._since = self._now()

    def count(self, samples: int) -> None:
        self.steps += 1
        if self._since is not None:
            self.samples += samples
        elif self.steps == self.warmup:
            self._since = self._now()

    def stop(self) -> None:
        if self._since is not None:
            self.seconds += self._now() - self._since
            self._since = None

    @property
    def rate(self) -> float | None:
        return self.samples / self.seconds if self.samples else None

    def __str__(self) -> str:
        return f"{self.rate:.0f} samples/s" if self.rate else "warming up"

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        dist.barrier()
        return time.perf_counter()


def replace_file(path: Path, new: Path, state: dict) -> None:
    """Write STATE as NEW, and let it take the place of PATH once it is on the disk; whatever ends this leaves one of them whole."""
    with new.open("wb") as out:
        torch.save(state, out)
        out.flush()
        os.fsync(out.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def choose_precision(amp: str, device: torch.device) -> torch.dtype | None:
    """The type for autocast, None for full precision."""
    if amp == "off" or (amp == "auto" and device.type == "cpu"):
        return None
    if amp == "auto":
        return torch.bfloat16 if torch.cuda.get_device_capability(device) >= (8, 0) else torch.float16
    if amp == "fp16" and device.type == "cpu":
        sys.exit("--amp fp16 needs a GPU; choose bf16 or off on a processor.")
    return torch.float16 if amp == "fp16" else torch.bfloat16


def seed_everything(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)  # also all GPUs


def random_state(device: torch.device) -> dict:
    cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return {"python": random.getstate(), "torch": torch.get_rng_state(), "cuda": cuda}


def set_random_state(state: dict, device: torch.device) -> None:
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None and device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"], device)


def spans(values: list[float], most: int = 100) -> list[float]:
    """Return at most so many means of equal spans: the curve that the report draws."""
    count = min(most, len(values))
    edges = [len(values) * place // count for place in range(count + 1)]
    return [sum(values[one:two]) / (two - one) for one, two in zip(edges, edges[1:])]


def write_metrics(trainer: Trainer, resumed: str | None, seconds: float, accuracy: float) -> None:
    """Rank 0 leaves the numbers of the run where $ALLREDUCE_METRICS says."""
    few = max(1, min(5, len(trainer.losses) // 4))
    device = trainer.device
    # A run that was resumed at its very end has no losses of its own.
    first, last = (mean_over_ranks(sum(part) / len(part), device) if part else float("nan")
                   for part in (trainer.losses[:few], trainer.losses[-few:]))  # fmt: skip
    metrics = {
        "samples_per_second": trainer.clock.rate, "accuracy": accuracy,
        "model": trainer.args.model, "epochs": trainer.epoch, "steps": len(trainer.losses), "seconds": seconds, "world_size": dist.get_world_size(),
        "batch_size": trainer.args.batch_size, "accumulate": trainer.args.accumulate,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "backend": dist.get_backend(), "precision": str(trainer.precision or torch.float32).rpartition(".")[2],
        "parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
        "torch": torch.__version__, "resumed_from": resumed,
    }  # fmt: skip
    if trainer.losses:
        metrics.update(loss_first=first, loss_last=last, losses=mean_over_ranks(spans(trainer.losses), device))
    size = dist.get_world_size()
    ranks = f"{size} rank{'s' * (size != 1)}"
    say(f"loss {first:.4f} -> {last:.4f}, accuracy {accuracy:.3f}, {trainer.clock}, {ranks}")
    if dist.get_rank() == 0 and os.environ.get("ALLREDUCE_METRICS"):
        Path(os.environ["ALLREDUCE_METRICS"]).write_text(json.dumps(metrics, indent=1) + "\n", encoding="utf-8")


@record  # torchrun then knows the exception of a rank that failed, not only its exit code
def main() -> None:
    args = parse_arguments()
    device = join_ranks(args.timeout)
    began = time.perf_counter()
    size = dist.get_world_size()
    say(f"{size} rank{'s' * (size != 1)} on {device.type} with {dist.get_backend()}, PyTorch {torch.__version__}")
    trainer = Trainer(args, device)
    resumed = trainer.resume() if args.resume else None
    try:
        trainer.train()
    except Stopped as place:
        say(f"stopped by SIGTERM; the checkpoint is at {place}")
        sys.exit(128 + signal.SIGTERM)
    write_metrics(trainer, resumed, time.perf_counter() - began, trainer.evaluate())
    # The last one to let go of the group has to be the next line, which waits for its threads without the interpreter's lock.
    del trainer
    gc.collect()
    # Not after an error: a rank that failed must end at once, so that torchrun and the other ranks notice.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
