# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a torchvision on a node must do: choose boxes, and read a small CIFAR-10 as examples/cifar10.py, which lies beside this, reads it."""

import pickle
import struct
import tempfile
from pathlib import Path

import cifar10
import numpy
import torch
import torchvision

COUNT = 20  # images of a file
FILES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")


class Small(torchvision.datasets.CIFAR10):
    """Another set in the layout of CIFAR-10, of whose own files torchvision knows the checksums."""

    def _check_integrity(self):
        return True

    def _load_meta(self):
        self.classes = cifar10.CLASSES


class Python2(pickle._Pickler):
    """Writes bytes as Python 2 did, which wrote CIFAR-10: torchvision reads its keys as text."""

    def save_text(self, value):
        self.write(pickle.BINSTRING + struct.pack("<i", len(value)) + value)
        self.memoize(value)

    dispatch = {**pickle._Pickler.dispatch, bytes: save_text}


def write(root):
    """Write the files, with images that differ."""
    random = numpy.random.default_rng(1)
    (root / cifar10.PLACE).mkdir()
    for name in FILES:
        data = random.integers(256, size=(COUNT, 3072), dtype=numpy.uint8)
        content = {b"data": data, b"labels": random.integers(10, size=COUNT).tolist()}
        with (root / cifar10.PLACE / name).open("wb") as file:
            Python2(file, protocol=2).dump(content)


def compare(root):
    """Compare what both read, pixel by pixel."""
    ours = cifar10.read_folder(root)
    for train, part in ((True, ours.training), (False, ours.evaluation)):
        theirs = Small(root, train=train)
        pixels = torch.from_numpy(theirs.data).permute(0, 3, 1, 2)
        assert torch.equal(part.images, pixels), "other pixels"
        assert part.labels.tolist() == theirs.targets, "other labels"


boxes = torch.tensor([[0.0, 0, 2, 2], [0, 0, 2, 2], [3, 3, 4, 4]])
kept = torchvision.ops.nms(boxes, torch.tensor([3.0, 2, 1]), 0.5).tolist()
print(f"torchvision {torchvision.__version__}: of three boxes kept {kept}")
with tempfile.TemporaryDirectory() as folder:
    write(Path(folder))
    compare(Path(folder))
print(f"{len(FILES)} files of CIFAR-10 read alike")
