# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CIFAR-10 as its authors publish it for Python, for train_ddp.py --data; it lies next to that script.

    data/cifar-10-batches-py/data_batch_1 ... data_batch_5, test_batch       where torchvision unpacks it, too

https://www.cs.toronto.edu/~kriz/cifar.html describes the files: pickles, of which only arrays and text are read here. Nothing is
downloaded. Needs PyTorch and NumPy, not torchvision.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import Dataset

PLACE = "cifar-10-batches-py"
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
SIDE = 32  # pixels
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of its training set, in parts of 255
BORDER = 4  # pixels of it around an image, of which training takes a random part: https://arxiv.org/abs/1512.03385, 4.2
# What an array in a pickle is made of, in releases of NumPy before and after 2.
ALLOWED = {
    ("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode"),
    ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"),
}  # fmt: skip


class Labelled(NamedTuple):
    """Images, (n, 3, 32, 32) bytes, and the numbers of their classes."""

    images: Tensor
    labels: Tensor


class Folder(NamedTuple):
    """The content of the files, the same on every rank."""

    classes: list[str]
    training: Labelled
    evaluation: Labelled

    def digest(self) -> str:
        """Return a value that is equal where the images and classes are equal."""
        found = hashlib.sha256()
        for part in (self.training, self.evaluation):
            found.update(part.images.numpy().tobytes() + part.labels.numpy().tobytes())
        return found.hexdigest()


class Arrays(pickle.Unpickler):
    """Reads arrays, and refuses everything that a pickle could have called instead."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which CIFAR-10 has no use for")
        return super().find_class(module, name)


def read_folder(root: Path) -> Folder:
    """Return the images below ROOT, in the order of the files."""
    parts = [read_file(root / PLACE / f"data_batch_{number}") for number in range(1, 6)]
    training = Labelled(torch.cat([one.images for one in parts]), torch.cat([one.labels for one in parts]))
    return Folder(CLASSES, training, read_file(root / PLACE / "test_batch"))


def read_file(path: Path) -> Labelled:
    """Return the images of one file."""
    try:
        with path.open("rb") as stream:
            content = Arrays(stream, encoding="bytes").load()
        images = torch.from_numpy(content[b"data"]).reshape(-1, 3, SIDE, SIDE)
        labels = torch.tensor(content[b"labels"])
    except OSError as error:
        sys.exit(f"{path} cannot be read: {error.strerror}; on a cluster every node needs it (playbook stage.yml).")
    except Exception as error:  # a pickle that was cut off or changed can raise anything
        sys.exit(f"{path} is no file of CIFAR-10 for Python: {error}.")
    if images.dtype != torch.uint8 or labels.shape != images.shape[:1] or not 0 <= labels.min() <= labels.max() < 10:
        sys.exit(f"{path} is no file of CIFAR-10 for Python: images or labels have another form.")
    return Labelled(images, labels)


class Images(Dataset):
    """Images of SIZE x SIZE pixels; for training a random part of each with its border, and every other one mirrored."""

    def __init__(self, part: Labelled, size: int, training: bool):
        self.part, self.size, self.training = part, size, training
        self.mean = torch.tensor(MEAN).view(3, 1, 1)
        self.deviation = torch.tensor(DEVIATION).view(3, 1, 1)

    def __len__(self) -> int:
        return len(self.part.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        pixels = self.part.images[index]
        if self.training:
            left, upper, mirrored = (torch.rand(3) * torch.tensor([2 * BORDER + 1, 2 * BORDER + 1, 2])).int().tolist()
            pixels = F.pad(pixels, [BORDER] * 4)[:, upper : upper + SIDE, left : left + SIDE]
            pixels = pixels.flip(2) if mirrored else pixels
        image = (pixels / 255 - self.mean) / self.deviation
        if self.size != SIDE:
            image = F.interpolate(image[None], size=self.size, mode="bilinear", antialias=True)[0]
        return image, int(self.part.labels[index])
