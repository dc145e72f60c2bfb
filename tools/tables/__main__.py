# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make tables`: read the package index and bring the tables of the frameworks up to date; tell what changed."""

from __future__ import annotations

import datetime
import sys
from bisect import insort
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import repeat
from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.cupy import numpy_floor, packages
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.extensions import PACKAGES, Package, required
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.extensions import read as read_extension
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.index import Index
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.jax import read as read_jax
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.torch import new_row
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.wheels import Release, pinned, release_of
from packaging.version import Version

from . import cuda, cupy, document, extensions, horovod, jax, nvidia, tensorflow, torch

TABLES = Path(__file__).resolve().parents[2] / "data" / "stack"
TABLE = TABLES / "torch.yml"
# Clients that ask the index at the same time; they wait for it most of the time.
READERS = 6
# What has no wheel is built as far as its metadata takes.
INDEX = Index(builds=True, hurried=False)


def pythons(rows: Iterable[Mapping]) -> list[str]:
    """Return every Python that a row names, and the one after them."""
    known = sorted({int(one.partition(".")[2]) for row in rows for one in row["python"]})
    return [f"3.{minor}" for minor in [*known, known[-1] + 1]]


def companions(name: str, asked: Iterable[str], oldest: str, side: Executor) -> dict[str, str]:
    """Return {PyTorch's release: the companion's newest release that takes this very one}, down to the oldest asked for."""
    found: dict[str, str] = {}
    published = INDEX.releases(name, asked)
    newest_first = sorted(published, key=Version, reverse=True)
    for begin in range(0, len(newest_first), READERS):
        some = newest_first[begin : begin + READERS]
        requires = side.map(lambda version: INDEX.requirements(name, version, published[version]), some)
        takes = {version: pinned(one, "torch") for version, one in zip(some, requires, strict=True)}
        for version, release in takes.items():
            found.setdefault(release or "", version)
        if any(release and Version(release) < Version(oldest) for release in takes.values()):
            break
    return found


def read(asked: list[str], oldest: str, side: Executor) -> list[Release]:
    """Return every published release of PyTorch that is not older than this one, with its companions."""
    beside = {name: companions(name, asked, oldest, side) for name in torch.COMPANIONS}
    published = {
        one: python for one, python in INDEX.releases("torch", asked).items() if Version(one) >= Version(oldest)
    }
    return [
        replace(one, companions={name: these[one.version] for name, these in beside.items() if one.version in these})
        for one in side.map(partial(release_of, INDEX, name="torch"), published, ([one] for one in published.values()))
    ]


def bring_up_to_date(rows: list, releases: Iterable[Release], today: str) -> list[str]:
    """Write releases into the rows; return a line for each change and each difference."""
    said = []
    for release in releases:
        row = next((one for one in rows if one["version"] == release.version), None)
        if row is not None:
            said += [f"{release.version}: {text}" for text in torch.update(row, release, today)]
            continue
        made = new_row(release, today)
        if made:
            insort(rows, document.styled(made), key=lambda one: Version(one["version"]))
        said.append(f"{release.version}: {'new' if made else 'no row, as its metadata does not tell its CUDA'}")
    return said


def pytorch_lines(side: Executor, today: str) -> list[str]:
    """Bring torch.yml up to date; return what changed."""
    table = document.read(TABLE)
    rows = table["rows"]
    found = read(pythons(rows), min((row["version"] for row in rows), key=Version), side)
    said = bring_up_to_date(rows, found, today)
    document.write(TABLE, table)
    return [f"PyTorch {line}" for line in said]


def tensorflow_lines(side: Executor, today: str) -> list[str]:
    """Bring tensorflow.yml up to date; return what changed."""
    table = document.read(TABLES / "tensorflow.yml")
    published = INDEX.wheel_pythons("tensorflow", pythons(table["rows"]))
    said = tensorflow.update(table["rows"], published, partial(release_of, INDEX, name="tensorflow"))
    document.write(TABLES / "tensorflow.yml", table)
    return [f"TensorFlow {line}" for line in said]


def cupy_lines(side: Executor, today: str) -> list[str]:
    """Bring cupy.yml up to date; return what changed."""
    table = document.read(TABLES / "cupy.yml")
    rows = table["rows"]
    names, asked = packages(rows), pythons(rows)
    published = dict(zip(names, side.map(INDEX.wheel_pythons, names, repeat(asked)), strict=True))

    def numpy(package: str, release: str) -> str | None:
        return numpy_floor(INDEX.requirements(package, release, published[package][release][-1]))

    said = cupy.update(rows, published, numpy)
    document.write(TABLES / "cupy.yml", table)
    return said


def jax_lines(side: Executor, today: str) -> list[str]:
    """Bring jax.yml up to date; return what changed."""
    table = document.read(TABLES / "jax.yml")
    asked = pythons(table["rows"])
    names = ["jax", "jaxlib", *(f"jax-cuda{major}-plugin" for major in table["min_cc"])]
    published = dict(zip(names, side.map(INDEX.wheel_pythons, names, repeat(asked)), strict=True))
    said = jax.update(table["rows"], published["jax"], partial(read_jax, INDEX, published=published), today)
    document.write(TABLES / "jax.yml", table)
    return [f"JAX {line}" for line in said]


def pins_of(name: str, rows: Iterable[Mapping], side: Executor) -> dict[str, str | None]:
    """Return {PyTorch's release: the range of a package that it requires on the oldest Python}; the newest may be left out."""

    def pin(row: Mapping) -> str | None:
        platform = f"{row['platforms']['x86_64']}_x86_64"
        requires = INDEX.requirements("torch", row["version"], row["python"][0], platform)
        return required(requires, name, row["python"][0])

    rows = list(rows)
    return dict(zip((row["version"] for row in rows), side.map(pin, rows), strict=True))


def extension_lines(package: Package, side: Executor, today: str) -> list[str]:
    """Bring the table of a framework that stands on PyTorch up to date; return what changed."""
    path = TABLES / f"{package.table}.yml"
    table = document.read(path)
    torches = document.read(TABLE)["rows"]
    published = INDEX.wheel_pythons(package.name, pythons(torches)[:-1])
    asked = extensions.missing(table["rows"], published, package)
    pins = pins_of(package.name, torches, side) if package.pinned and asked else None
    reader = partial(read_extension, INDEX, name=package.name, published=published, pins=pins)
    found = dict(zip(asked, side.map(reader, asked), strict=True))
    said = extensions.update(table["rows"], published, found.__getitem__, package, today)
    document.write(path, table)
    return [f"{package.title} {line}" for line in said]


def nvidia_lines(side: Executor, today: str) -> list[str]:
    """Bring nvidia_wheels.yml up to date; return what changed."""
    path = TABLES / "nvidia_wheels.yml"
    table = document.read(path)
    published = dict(
        zip(nvidia.PACKAGES, side.map(INDEX.releases, nvidia.PACKAGES, repeat(nvidia.PYTHONS)), strict=True)
    )
    asked = nvidia.missing(table["rows"], published)
    found = dict(zip(asked, side.map(lambda one: nvidia.read(INDEX, *one), asked), strict=True))
    said = nvidia.update(table["rows"], published, lambda *one: found[one], today)
    document.write(path, table)
    return said


def horovod_lines(side: Executor, today: str) -> list[str]:
    """Return the releases of Horovod that have to be compiled before they get a row."""
    rows = document.read(TABLES / "horovod.yml")["rows"]
    asked = pythons(document.read(TABLE)["rows"])
    found = horovod.missing(rows, INDEX.releases("horovod", asked))
    return [f"Horovod {release}: no row, as it was not compiled here" for release in found]


def cuda_lines(side: Executor, today: str) -> list[str]:
    """Return the releases of the toolkit that have to be looked up before they get a row."""
    table = document.read(TABLES / "cuda.yml")
    found = cuda.missing(table["rows"], table["index_only"], INDEX.releases(cuda.PACKAGE, nvidia.PYTHONS))
    return [f"CUDA {release}: no row, as the index tells neither its driver nor who publishes it" for release in found]


WRITERS = {
    "cuda": cuda_lines,
    "torch": pytorch_lines,
    "tensorflow": tensorflow_lines,
    "cupy": cupy_lines,
    "jax": jax_lines,
    "nvidia": nvidia_lines,
    "horovod": horovod_lines,
    **{package.table: partial(extension_lines, package) for package in PACKAGES},
}


def main(*names: str) -> int:
    """Update these tables of this checkout, or all."""
    today = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    with ThreadPoolExecutor(READERS) as side:
        said = [line for name in names or WRITERS for line in WRITERS[name](side, today)]
    print("\n".join(said) or "nothing new in the package index")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
