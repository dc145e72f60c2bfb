#!/usr/bin/env python3
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data-parallel training with TensorFlow and Horovod, to start your own from: replace `build_data` and `build_model`.

    horovodrun -np 2 -H gpu-1:1,gpu-2:1 /opt/allreduce/envs/main/bin/python train_horovod_tf.py --epochs 2

Runs on GPUs (NCCL) or processors (Gloo), on synthetic data: ten classes of images, each a fixed pattern in noise, so the loss really falls.
Each node keeps the checkpoint, and whoever has the newest gives it to the others, so no shared file system is needed.
Horovod 0.28.1 is for TensorFlow before 2.16, which came with Keras 3.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

CLASSES = 10


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small network on a synthetic image data set, with Horovod.")
    add = parser.add_argument
    add("--epochs", type=int, default=4)
    add("--batch-size", type=int, default=64, help="samples per rank and step (default 64)")
    add("--learning-rate", type=float, default=0.02, help="for one rank; grows with the square root of their number")
    add("--samples", type=int, default=4096, help="images in the training set (default 4096)")
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


def build_data(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of the training set, the same on every rank."""
    numbers = np.random.default_rng(seed)
    patterns = np.kron(numbers.standard_normal((CLASSES, 8, 8, 3)), np.ones((1, 4, 4, 1)))
    labels = numbers.integers(CLASSES, size=samples)
    images = patterns[labels] + 1.5 * numbers.standard_normal((samples, 32, 32, 3))
    return images.astype("float32"), labels


def build_model() -> tf.keras.Model:
    """A small convolutional network."""
    layers = [tf.keras.layers.Conv2D(width, 3, strides=2, padding="same", activation="relu") for width in (16, 32, 64)]
    model = tf.keras.Sequential([*layers, tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(CLASSES)])
    model.build((None, 32, 32, 3))
    return model


# --- Training ---------------------------------------------------------------------------------------------------------


class Trainer:
    """State of a training: model, optimizer, position."""

    def __init__(self, args: argparse.Namespace):
        self.args, self.epoch = args, 0
        tf.keras.utils.set_random_seed(args.seed)  # tf.random.set_seed alone leaves the first weights to chance
        self.model = build_model()
        self.optimizer = tf.keras.optimizers.SGD(args.learning_rate * hvd.size() ** 0.5, momentum=0.9)
        self.optimizer.build(self.model.trainable_variables)
        self.images, self.labels = build_data(args.samples, args.seed)
        self.steps = args.samples // (args.batch_size * hvd.size())
        if not self.steps:
            sys.exit(
                f"{args.samples} samples do not fill a batch of {args.batch_size * hvd.size()}; "
                "raise --samples or lower --batch-size."
            )
        self.step = tf.function(self._step)

    def variables(self) -> list[tf.Variable]:
        """All that a checkpoint holds, and that is the same on every rank."""
        return [*self.model.variables, *self.optimizer.variables]

    def train_epoch(self) -> float:
        """One epoch; returns its mean loss over all ranks."""
        # The same order on every rank, another one in each epoch; each rank takes its share.
        order = np.random.default_rng((self.args.seed, self.epoch)).permutation(len(self.labels))
        mine = order[hvd.rank() :: hvd.size()]
        batches = np.split(mine[: self.steps * self.args.batch_size], self.steps)
        losses = [self.step(self.images[batch], self.labels[batch]) for batch in batches]
        self.epoch += 1
        return float(hvd.allreduce(tf.reduce_mean(losses), name="loss"))

    def _step(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            outputs = self.model(images, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs))
        # Averages the gradients over the ranks.
        gradients = hvd.DistributedGradientTape(tape).gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    def save(self) -> None:
        """One rank of each node writes, under another name first, so that whatever ends this leaves a whole checkpoint."""
        if self.args.checkpoint_dir and hvd.local_rank() == 0:
            path = self.args.checkpoint_dir / "checkpoint.npz"
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_suffix(f".{hvd.rank()}.new")
            with new.open("wb") as out:
                np.savez(out, *(one.numpy() for one in self.variables()), epoch=self.epoch)
                out.flush()
                os.fsync(out.fileno())
            new.replace(path)

    def resume(self) -> None:
        """Continue from the newest checkpoint of any node, if there is one."""
        path = self.args.checkpoint_dir / "checkpoint.npz"
        mine = None
        if path.exists():
            with np.load(path) as found:
                mine = {name: found[name] for name in found.files}
        have = hvd.allgather_object(int(mine["epoch"]) if mine else -1, name="epochs")
        state = hvd.broadcast_object(mine, root_rank=have.index(max(have)), name="checkpoint")
        if state:
            for number, variable in enumerate(self.variables()):
                variable.assign(state[f"arr_{number}"])
            self.epoch = int(state["epoch"])
            say(f"resumed after epoch {self.epoch}")


def choose_device() -> str:
    """Let this rank see the GPU of its number only, where Horovod computes on GPUs; returns what it trains on."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus or not hvd.nccl_built():
        tf.config.set_visible_devices([], "GPU")
        return "cpu"
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    tf.config.experimental.set_memory_growth(gpus[hvd.local_rank()], True)
    return "cuda"


def main() -> None:
    args = parse_arguments()
    hvd.init()
    device = choose_device()
    trainer = Trainer(args)
    if args.resume:
        trainer.resume()
    hvd.broadcast_variables(trainer.variables(), root_rank=0)
    operation = "NCCL" if device == "cuda" else "Gloo"
    ranks = f"{hvd.size()} rank{'s' * (hvd.size() != 1)}"
    say(f"{ranks} on {device} with {operation}, TensorFlow {tf.__version__}")
    losses, began = [], time.perf_counter()
    while trainer.epoch < args.epochs:
        losses.append(trainer.train_epoch())
        trainer.save()
        say(f"epoch {trainer.epoch}/{args.epochs}  loss {losses[-1]:.4f}")
    seconds = time.perf_counter() - began
    samples = len(losses) * trainer.steps * args.batch_size * hvd.size()
    metrics = {
        "world_size": hvd.size(),
        "epochs": trainer.epoch,
        "samples_per_second": samples / seconds,
        "device": device,
        "tensorflow": tf.__version__,
    }
    if losses:
        metrics.update(loss_first=losses[0], loss_last=losses[-1], losses=losses)
        say(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, {samples / seconds:.0f} samples/s, {ranks}")
    if hvd.rank() == 0 and os.environ.get("ALLREDUCE_METRICS"):
        Path(os.environ["ALLREDUCE_METRICS"]).write_text(json.dumps(metrics) + "\n", encoding="utf-8")
    hvd.shutdown()


if __name__ == "__main__":
    main()
