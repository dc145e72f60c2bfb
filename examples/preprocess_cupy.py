#!/usr/bin/env python3
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepare images for training with CuPy on a GPU, or with NumPy where there is none, which it says; to start your own from.

    python preprocess_cupy.py --input shards --output prepared --size 112

Each file of the input, `*.npy`, holds images as uint8 of shape (count, height, width, 3). The output has the same names: float16 of shape
(count, 3, size, size), shrunk by averaging and normalized by the mean and deviation of the whole input. A run that was cut off goes on
with the files that are missing. Files are read ahead and written behind by threads while others are computed; at its end it says which of
the three took the time.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import numpy


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Shrink and normalize images, on a GPU where there is one.")
    add = parser.add_argument
    add("--input", type=Path, required=True, help="directory with *.npy, uint8 of shape (count, height, width, 3)")
    add("--output", type=Path, required=True, help="directory for the results")
    add("--size", type=int, default=112, help="height and width of the results, a divisor of the input's (default 112)")
    add("--arrays", choices=["auto", "cupy", "numpy"], default="auto", help="cupy: fail where there is no GPU")
    add("--threads", type=int, default=4, help="that read, and as many that write (default 4)")
    args = parser.parse_args()
    if args.threads < 1:
        parser.error(f"--threads is {args.threads}; it must be at least 1")
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


class Busy:
    """Seconds that reading, computing and writing took; ``threads``: how many of them read, and write, at once."""

    def __init__(self, threads: int):
        self.threads, self.lock = threads, Lock()
        self.seconds = {"reading": 0.0, "computing": 0.0, "writing": 0.0}

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            with self.lock:
                self.seconds[what] += time.perf_counter() - began

    def sentence(self, took: float) -> str:
        """Say which of them binds: the run cannot be shorter than the longest, whatever the others do."""
        alone = {what: taken / (1 if what == "computing" else self.threads) for what, taken in self.seconds.items()}
        shares = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in alone.items())
        binds = max(alone, key=lambda what: alone[what])
        return f"{shares} of {took:.1f} s, with {self.threads} threads that read and as many that write: {binds} binds"


def ahead(pool: ThreadPoolExecutor, work: Callable, items: Iterable, most: int) -> Iterator:
    """Yield the results of work(item) in order, while threads work on the next ones, at most so many."""
    coming: deque[Future] = deque()
    for item in items:
        coming.append(pool.submit(work, item))
        if len(coming) > most:
            yield coming.popleft().result()
    while coming:
        yield coming.popleft().result()


def load(busy: Busy, path: Path) -> tuple[Path, numpy.ndarray]:
    """Return a path and its images."""
    with busy.doing("reading"):
        images = numpy.load(path)
    if images.dtype != numpy.uint8 or images.ndim != 4 or images.shape[3] != 3:
        sys.exit(
            f"{path} has {images.dtype} of shape {images.shape}; images are uint8 of shape (count, height, width, 3)."
        )
    return path, images


def measure(arrays, read: Iterable[tuple[Path, numpy.ndarray]], busy: Busy):
    """Return mean and deviation of each colour over all files."""
    count, total, squares = 0, arrays.zeros(3, "float64"), arrays.zeros(3, "float64")
    for _path, loaded in read:
        with busy.doing("computing"):
            images = arrays.asarray(loaded).reshape(-1, 3)
            count += len(images)
            total += images.sum(axis=0, dtype="float64")
            squares += (images.astype("float32") ** 2).sum(axis=0, dtype="float64")
            total.tolist()  # waits for the GPU
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


def write(busy: Busy, path: Path, result: numpy.ndarray) -> Path:
    """Write a result under another name first: what has its name is whole."""
    with busy.doing("writing"):
        new = path.with_suffix(".new")
        with new.open("wb") as out:
            numpy.save(out, result)
            out.flush()
            os.fsync(out.fileno())
        new.replace(path)
    return path


def prepare_all(
    arrays, args: argparse.Namespace, paths: list[Path], missing: list[Path], busy: Busy
) -> Iterator[tuple[Path, int]]:
    """Prepare the missing files; yield each with its number of images once it is written."""
    counts: dict[Path, int] = {}

    def results() -> Iterator[tuple[Path, numpy.ndarray]]:
        for path, loaded in ahead(readers, lambda path: load(busy, path), missing, args.threads):
            with busy.doing("computing"):
                result = prepare(arrays, arrays.asarray(loaded), args.size, mean, deviation)
                result = result if arrays is numpy else arrays.asnumpy(result)
            counts[args.output / path.name] = len(result)
            yield args.output / path.name, result

    with ThreadPoolExecutor(args.threads) as readers, ThreadPoolExecutor(args.threads) as writers:
        mean, deviation = measure(arrays, ahead(readers, lambda path: load(busy, path), paths, args.threads), busy)
        for path in ahead(writers, lambda one: write(busy, *one), results(), args.threads):
            yield path, counts[path]


def main() -> None:
    args = parse_arguments()
    arrays, which = choose_arrays(args.arrays)
    print(which, flush=True)
    paths = sorted(args.input.glob("*.npy"))
    args.output.mkdir(parents=True, exist_ok=True)
    missing = [path for path in paths if not (args.output / path.name).exists()]
    began, done, busy = time.perf_counter(), 0, Busy(args.threads)
    for number, (path, count) in enumerate(prepare_all(arrays, args, paths, missing, busy) if missing else (), 1):
        done += count
        print(f"{number}/{len(missing)} {path.name}  {done / (time.perf_counter() - began):.0f} images/s", flush=True)
    print(f"{len(paths) - len(missing)} files were there already, {len(missing)} came", flush=True)
    if missing:
        print(busy.sentence(time.perf_counter() - began), flush=True)


if __name__ == "__main__":
    main()
