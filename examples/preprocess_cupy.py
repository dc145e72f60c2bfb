#!/usr/bin/env python3
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepare images for training with CuPy on a GPU, or with NumPy where there is none, which it says; to start your own from.

    python preprocess_cupy.py --input shards --output prepared --size 112

Each file of the input, `*.npy`, holds images as uint8 of shape (count, height, width, 3). The output has the same names: float16 of shape
(count, 3, size, size), shrunk by averaging and normalized by the mean and deviation of the whole input. A run that was cut off goes on
with the files that are missing.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Shrink and normalize images, on a GPU where there is one.")
    add = parser.add_argument
    add("--input", type=Path, required=True, help="directory with *.npy, uint8 of shape (count, height, width, 3)")
    add("--output", type=Path, required=True, help="directory for the results")
    add("--size", type=int, default=112, help="height and width of the results, a divisor of the input's (default 112)")
    add("--arrays", choices=["auto", "cupy", "numpy"], default="auto", help="cupy: fail where there is no GPU")
    args = parser.parse_args()
    if not sorted(args.input.glob("*.npy")):
        parser.error(
            f"--input {args.input} has no *.npy; write your images there as uint8 of shape (count, height, width, 3)"
        )
    return args


def choose_arrays(wanted: str):
    """Return the module that computes, CuPy or NumPy, and a sentence that says which and why."""
    if wanted == "numpy":
        return numpy, "NumPy on the processor, as asked"
    try:
        import cupy

        properties = cupy.cuda.runtime.getDeviceProperties(0)
        cupy.ones(8).sum().item()  # the first kernel is compiled now, and shows whether the GPU computes
    except Exception as error:  # CuPy has no common class for "not installed", "no driver" and "no GPU"
        reason = (
            f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}"
        )
        if wanted == "cupy":
            sys.exit(f"CuPy finds no GPU that computes ({reason}); use --arrays numpy, or look at the driver.")
        return numpy, f"NumPy on the processor, as CuPy finds no GPU that computes ({reason})"
    return cupy, f"CuPy {cupy.__version__} on {properties['name'].decode()}"


def load(arrays, path: Path):
    """Return the images of a file where they are computed with."""
    images = numpy.load(path, mmap_mode="r")
    if images.dtype != numpy.uint8 or images.ndim != 4 or images.shape[3] != 3:
        sys.exit(
            f"{path} has {images.dtype} of shape {images.shape}; images are uint8 of shape (count, height, width, 3)."
        )
    return arrays.asarray(images)


def measure(arrays, paths: list[Path]):
    """Return mean and deviation of each colour over all files."""
    count, total, squares = 0, arrays.zeros(3, "float64"), arrays.zeros(3, "float64")
    for path in paths:
        images = load(arrays, path).reshape(-1, 3)
        count += len(images)
        total += images.sum(axis=0, dtype="float64")
        squares += (images.astype("float32") ** 2).sum(axis=0, dtype="float64")
    mean = total / count
    return mean, arrays.sqrt(squares / count - mean**2)


def prepare(arrays, images, size: int, mean, deviation):
    """Return the images shrunk, normalized, and with their colours first."""
    count, height, width, _colours = images.shape
    if height % size or width % size:
        sys.exit(f"--size {size} does not divide images of {width} x {height}.")
    blocks = images.reshape(count, size, height // size, size, width // size, 3)
    small = (blocks.mean(axis=(2, 4), dtype="float32") - mean.astype("float32")) / deviation.astype("float32")
    return small.transpose(0, 3, 1, 2).astype("float16")


def write(path: Path, result) -> None:
    """Write a result under another name first: what has its name is whole."""
    new = path.with_suffix(".new")
    with new.open("wb") as out:
        numpy.save(out, result)
        out.flush()
        os.fsync(out.fileno())
    new.replace(path)


def main() -> None:
    args = parse_arguments()
    arrays, which = choose_arrays(args.arrays)
    print(which, flush=True)
    paths = sorted(args.input.glob("*.npy"))
    args.output.mkdir(parents=True, exist_ok=True)
    missing = [path for path in paths if not (args.output / path.name).exists()]
    began, done = time.perf_counter(), 0
    if missing:
        mean, deviation = measure(arrays, paths)
    for number, path in enumerate(missing, 1):
        result = prepare(arrays, load(arrays, path), args.size, mean, deviation)
        write(args.output / path.name, result if arrays is numpy else arrays.asnumpy(result))
        done += len(result)
        print(f"{number}/{len(missing)} {path.name}  {done / (time.perf_counter() - began):.0f} images/s", flush=True)
    print(f"{len(paths) - len(missing)} files were there already, {len(missing)} came", flush=True)


if __name__ == "__main__":
    main()
