#!/usr/bin/env python3
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data-parallel training with TensorFlow, to start your own from: replace `build_data` and `build_model`.

One node trains on all its GPUs with MirroredStrategy, several with MultiWorkerMirroredStrategy, one process on each:

    python train_mirrored.py --epochs 2
    ansible-playbook allreduce.gpu.train -e train_script=train_mirrored.py -e train_nproc_per_node=1

On synthetic data: ten classes of images, each a fixed pattern in noise, so the loss really falls. Needs TensorFlow 2.12 or later.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

CLASSES = 10


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Train a small network on a synthetic image data set, with TensorFlow."
    )
    add = parser.add_argument
    add("--epochs", type=int, default=4)
    add(
        "--batch-size", type=int, default=64, help="samples per GPU and step, or per process without a GPU (default 64)"
    )
    add("--learning-rate", type=float, default=0.02, help="for one replica; grows with the square root of their number")
    add("--samples", type=int, default=4096, help="images in the training set (default 4096)")
    add("--port", type=int, default=29600, help="at which each node listens for the others (default 29600)")
    add("--seed", type=int, default=1)
    add(
        "--checkpoint-dir",
        type=Path,
        help="directory in which each node keeps its checkpoint, and from which it goes on",
    )
    args = parser.parse_args()
    for name in ("epochs", "batch_size", "samples"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be 1 or more, not {getattr(args, name)}")
    return args


def join_nodes(port: int) -> int:
    """Tell TensorFlow which nodes there are, before it is imported; returns this node's number."""
    if "TF_CONFIG" in os.environ:
        return json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    # Role train says which nodes a run has, in the same order on each.
    addresses = os.environ.get("ALLREDUCE_NODE_ADDRESSES", "").split(",")
    number = int(os.environ.get("ALLREDUCE_NODE_NUMBER", "0"))
    if len(addresses) > 1:
        workers = [f"[{one}]:{port}" if ":" in one else f"{one}:{port}" for one in addresses]
        config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": number}}
        os.environ["TF_CONFIG"] = json.dumps(config)
    return number


# --- Data and model: replace these ------------------------------------------------------------------------------------


def build_data(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of the training set, the same on every node."""
    numbers = np.random.default_rng(seed)
    patterns = np.kron(numbers.standard_normal((CLASSES, 8, 8, 3)), np.ones((1, 4, 4, 1)))
    labels = numbers.integers(CLASSES, size=samples)
    images = patterns[labels] + 1.5 * numbers.standard_normal((samples, 32, 32, 3))
    return images.astype("float32"), labels


def build_model(tf):
    """A module whose call gives logits. Plain TensorFlow: Keras 3 does not train under MultiWorkerMirroredStrategy."""
    shapes = [(3, 3, 3, 16), (3, 3, 16, 32), (3, 3, 32, 64), (64, CLASSES)]

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            # He's initialization: variance 2 / inputs.
            self.weights = [
                tf.Variable(tf.random.normal(shape, stddev=(2 / np.prod(shape[:-1])) ** 0.5)) for shape in shapes
            ]
            self.biases = [tf.Variable(tf.zeros(shape[-1])) for shape in shapes]

        def __call__(self, images):
            for weight, bias in zip(self.weights[:-1], self.biases):
                images = tf.nn.relu(tf.nn.conv2d(images, weight, strides=2, padding="SAME") + bias)
            return tf.reduce_mean(images, axis=(1, 2)) @ self.weights[-1] + self.biases[-1]

    return Net()


# --- Training ---------------------------------------------------------------------------------------------------------


class Trainer:
    """State of a training; everything a checkpoint holds, and how to go on."""

    def __init__(self, tf, args: argparse.Namespace, strategy):
        self.tf, self.args, self.strategy = tf, args, strategy
        self.together = args.batch_size * strategy.num_replicas_in_sync
        self.batches = args.samples // self.together
        if not self.batches:
            sys.exit(
                f"{args.samples} samples do not fill a batch of {self.together}; raise --samples or lower --batch-size."
            )
        self.rate = args.learning_rate * strategy.num_replicas_in_sync**0.5
        with strategy.scope():
            self.model = build_model(tf)
            self.velocities = [tf.Variable(tf.zeros_like(one)) for one in self.model.trainable_variables]
        self.epoch = tf.Variable(0, trainable=False)
        self.data = strategy.experimental_distribute_dataset(self._data())
        self.step = tf.function(self._step)
        self.manager = None
        if args.checkpoint_dir:
            state = tf.train.Checkpoint(model=self.model, velocities=self.velocities, epoch=self.epoch)
            self.manager = tf.train.CheckpointManager(state, str(args.checkpoint_dir), max_to_keep=2)

    def train(self) -> tuple[list[float], float]:
        """Return the mean loss of each epoch, and samples per second without the first step, which compiles."""
        losses, counted, seconds = [], 0, 0.0
        while int(self.epoch) < self.args.epochs:
            total, began = 0.0, time.perf_counter()
            for index, batch in enumerate(self.data):
                total += float(self.step(batch))
                if not counted and not index:
                    began = time.perf_counter()
                else:
                    counted += self.together
            seconds += time.perf_counter() - began
            self.epoch.assign_add(1)
            losses.append(total / self.batches)
            if self.manager:
                self.manager.save()
            speed = f"{counted / seconds:.0f} samples/s" if counted else "warming up"
            print(f"epoch {int(self.epoch)}/{self.args.epochs}  loss {losses[-1]:.4f}  {speed}", flush=True)
        return losses, counted / seconds if counted else 0.0

    def resume(self) -> None:
        """Continue from the checkpoints, which must be of the same epoch on every node."""
        if not self.manager:
            return
        self.manager.restore_or_initialize()
        tf, mine = self.tf, int(self.epoch)

        @tf.function
        def mean():
            context = tf.distribute.get_replica_context
            return self.strategy.run(lambda: context().all_reduce("MEAN", tf.constant(float(mine))))

        if float(self.strategy.experimental_local_results(mean())[0]) != mine:
            sys.exit(
                f"{self.args.checkpoint_dir} has {mine} epochs here, and others on another node; remove it on all."
            )
        if mine:
            print(f"resumed after epoch {mine}", flush=True)

    def _data(self):
        tf, options = self.tf, self.tf.data.Options()
        # Every node makes the same set, and takes its share of each batch.
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
        data = tf.data.Dataset.from_tensor_slices(build_data(self.args.samples, self.args.seed))
        data = data.shuffle(self.args.samples, seed=self.args.seed).batch(self.together, drop_remainder=True)
        return data.prefetch(tf.data.AUTOTUNE).with_options(options)

    def _step(self, batch):
        """One step of every replica; the mean loss."""
        tf = self.tf

        def replica(images, labels):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, self.model(images)))
            # Together, so that small ones travel in one message.
            found = [loss, *tape.gradient(loss, self.model.trainable_variables)]
            return tf.distribute.get_replica_context().all_reduce("MEAN", found)

        # The same on every replica now.
        loss, *gradients = (
            self.strategy.experimental_local_results(one)[0] for one in self.strategy.run(replica, batch)
        )
        for variable, velocity, gradient in zip(self.model.trainable_variables, self.velocities, gradients):
            velocity.assign(0.9 * velocity + gradient)
            variable.assign_sub(self.rate * velocity)
        return loss


def choose_strategy(tf):
    """One replica for each GPU; on processors one for each node."""
    if "TF_CONFIG" in os.environ:
        return tf.distribute.MultiWorkerMirroredStrategy()
    return tf.distribute.MirroredStrategy() if tf.config.list_physical_devices("GPU") else tf.distribute.get_strategy()


def main() -> None:
    args = parse_arguments()
    number = join_nodes(args.port)
    import tensorflow as tf  # only now: what it sees of the nodes is read at its start

    tf.random.set_seed(args.seed)
    strategy = choose_strategy(tf)
    gpus = tf.config.list_physical_devices("GPU")
    print(
        f"node {number}: {strategy.num_replicas_in_sync} replicas on {'GPUs' if gpus else 'processors'}, "
        f"{type(strategy).__name__}, TensorFlow {tf.__version__}",
        flush=True,
    )
    trainer = Trainer(tf, args, strategy)
    trainer.resume()
    losses, rate = trainer.train()
    if not losses:
        print("nothing left to train: the checkpoint is of the last epoch", flush=True)
        return
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, {rate:.0f} samples/s", flush=True)
    if number == 0 and os.environ.get("ALLREDUCE_METRICS"):
        metrics = {
            "samples_per_second": rate, "loss_first": losses[0], "loss_last": losses[-1], "losses": losses, "epochs": args.epochs,
            "world_size": strategy.num_replicas_in_sync, "batch_size": args.batch_size, "device": "cuda" if gpus else "cpu",
            "tensorflow": tf.__version__,
        }  # fmt: skip
        Path(os.environ["ALLREDUCE_METRICS"]).write_text(json.dumps(metrics, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
