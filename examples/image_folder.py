# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of a folder with one directory for each class, for train_ddp.py --data; it lies next to that script.

    photos/cat/1.jpg                the first of every ten images of a class is for evaluation
    photos/dog/2.png
    imagenet/train/n01440764/...    with train and val, val is for evaluation
    imagenet/val/n01440764/...

Needs PyTorch and Pillow, not torchvision.
"""

from __future__ import annotations

import hashlib
import math
import sys
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

try:
    from PIL import Image
except ImportError:
    sys.exit(
        "Images are decoded with Pillow, which this environment does not have; "
        "set python_env_packages: [pillow] and run site.yml, or install it in an environment of your own."
    )

EVALUATED = 10  # of so many images of a class, the first is for evaluation
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's colours, as published models take them


class Labelled(NamedTuple):
    """An image, and the number of its class."""

    path: str
    label: int


class Folder(NamedTuple):
    """The content of a folder, the same on every rank."""

    classes: list[str]
    training: list[Labelled]
    evaluation: list[Labelled]

    def digest(self) -> str:
        """Return a value that is equal where the same images have the same names."""
        found = hashlib.sha256()
        for path, label in (*self.training, *self.evaluation):
            found.update(f"{label} {Path(path).name}\n".encode("utf-8", "surrogateescape"))
        return found.hexdigest()


def read_folder(root: Path) -> Folder:
    """Return the images below ROOT, in an order that depends on nothing but their names."""
    if (root / "train").is_dir() and (root / "val").is_dir():
        training, evaluation = read_classes(root / "train"), read_classes(root / "val")
        if list(training) != list(evaluation):
            other = sorted(training.keys() ^ evaluation.keys())
            sys.exit(f"{root}/train and {root}/val have different classes: {', '.join(other[:5])}.")
        return Folder(list(training), label(training.values()), label(evaluation.values()))
    found = read_classes(root)
    held = [paths[::EVALUATED] for paths in found.values()]
    kept = [[path for place, path in enumerate(paths) if place % EVALUATED] for paths in found.values()]
    return Folder(list(found), label(kept), label(held))


def read_classes(root: Path) -> dict[str, list[str]]:
    """Return {class: paths of its images}, both sorted."""
    if not root.is_dir():
        sys.exit(f"{root} is not there, or is not a directory; on a cluster every node needs it (playbook stage.yml).")
    suffixes = {suffix for suffix, name in Image.registered_extensions().items() if name in Image.OPEN}
    found = {}
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and not folder.name.startswith("."):
            found[folder.name] = sorted(str(one) for one in folder.iterdir() if one.suffix.lower() in suffixes)
    empty = [name for name, paths in found.items() if not paths]
    if not found or empty:
        wanted = f"{root}/{empty[0]}" if empty else f"{root}/<class>"
        sys.exit(f"{wanted} has no image; there must be one directory for each class, with its images.")
    return found


def label(classes) -> list[Labelled]:
    """Return the paths of all CLASSES with the number of each."""
    return [Labelled(path, number) for number, paths in enumerate(classes) for path in paths]


class Images(Dataset):
    """Images of SIZE x SIZE pixels; for training a random part of each, and every other one mirrored."""

    def __init__(self, images: list[Labelled], size: int, training: bool):
        self.images, self.size, self.training = images, size, training
        self.mean = torch.tensor(MEAN).view(3, 1, 1)
        self.deviation = torch.tensor(DEVIATION).view(3, 1, 1)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        path, number = self.images[index]
        try:
            pixels = self.decode(path)
        except (OSError, SyntaxError) as error:  # SyntaxError: Pillow's word for a broken PNG
            raise RuntimeError(f"{path} cannot be decoded: {error}") from error
        if self.training and torch.rand(()) < 0.5:
            pixels = pixels.flip(2)
        return (pixels / 255 - self.mean) / self.deviation, number

    def decode(self, path: str) -> Tensor:
        """Return the pixels of one image, as bytes of shape (3, size, size)."""
        with Image.open(path) as image:
            image.draft("RGB", (2 * self.size, 2 * self.size))  # a large JPEG is decoded at a fraction of its size
            box = random_box(*image.size) if self.training else centre_box(*image.size)
            small = image.convert("RGB").resize((self.size, self.size), Image.BILINEAR, box=box)
        flat = torch.frombuffer(bytearray(small.tobytes()), dtype=torch.uint8)
        return flat.view(self.size, self.size, 3).permute(2, 0, 1)


def random_box(width: int, height: int) -> tuple[float, float, float, float]:
    """Return a part of an image, (left, upper, right, lower): a quarter of it or more, with sides from 3:4 to 4:3."""
    share, ratio, across, down = torch.rand(4).tolist()
    area, skew = (0.25 + 0.75 * share) * width * height, (4 / 3) ** (2 * ratio - 1)
    wide, high = min(width, math.sqrt(area * skew)), min(height, math.sqrt(area / skew))
    left, upper = across * (width - wide), down * (height - high)
    return left, upper, min(width, left + wide), min(height, upper + high)


def centre_box(width: int, height: int) -> tuple[float, float, float, float]:
    """Return the largest square in the middle of an image."""
    side = min(width, height)
    left, upper = (width - side) / 2, (height - side) / 2
    return left, upper, left + side, upper + side
