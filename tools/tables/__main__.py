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

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from . import cupy, document, extensions, index, jax, tensorflow, torch
from .releases import Release, pinned, wheels

TABLES = Path(__file__).resolve().parents[2] / "data" / "stack"
TABLE = TABLES / "torch.yml"
# Clients that ask the index at the same time; they wait for it most of the time.
READERS = 6


def pythons(rows: Iterable[Mapping]) -> list[str]:
    """Return every Python that a row names, and the one after them."""
    known = sorted({int(one.partition(".")[2]) for row in rows for one in row["python"]})
    return [f"3.{minor}" for minor in [*known, known[-1] + 1]]


def release_of(version: str, python: str, name: str = "torch") -> Release:
    """Return a release as the index has it; python: the oldest that it has a wheel for."""
    bare = Release(version, wheels(index.lock(name, version, python)))
    platform = f"{bare.platforms['x86_64']}_x86_64"
    return replace(bare, requires=tuple(index.requirements(name, version, bare.pythons[-1], platform)))


def companions(name: str, asked: Iterable[str], oldest: str, side: Executor) -> dict[str, str]:
    """Return {PyTorch's release: the companion's newest release that takes this very one}, down to the oldest asked for."""
    found: dict[str, str] = {}
    published = index.releases(name, asked)
    newest_first = sorted(published, key=Version, reverse=True)
    for begin in range(0, len(newest_first), READERS):
        some = newest_first[begin : begin + READERS]
        requires = side.map(lambda version: index.requirements(name, version, published[version]), some)
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
        one: python for one, python in index.releases("torch", asked).items() if Version(one) >= Version(oldest)
    }
    return [
        replace(one, companions={name: these[one.version] for name, these in beside.items() if one.version in these})
        for one in side.map(release_of, published, published.values())
    ]


def bring_up_to_date(rows: list, releases: Iterable[Release], today: str) -> list[str]:
    """Write releases into the rows; return a line for each change and each difference."""
    said = []
    for release in releases:
        row = next((one for one in rows if one["version"] == release.version), None)
        if row is not None:
            said += [f"{release.version}: {text}" for text in torch.update(row, release, today)]
            continue
        made = torch.new_row(release, today)
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
    published = index.wheel_pythons("tensorflow", pythons(table["rows"]))
    said = tensorflow.update(table["rows"], published, partial(release_of, name="tensorflow"))
    document.write(TABLES / "tensorflow.yml", table)
    return [f"TensorFlow {line}" for line in said]


def cupy_lines(side: Executor, today: str) -> list[str]:
    """Bring cupy.yml up to date; return what changed."""
    table = document.read(TABLES / "cupy.yml")
    rows = table["rows"]
    names, asked = cupy.packages(rows), pythons(rows)
    published = dict(zip(names, side.map(index.wheel_pythons, names, repeat(asked)), strict=True))

    def numpy(package: str, release: str) -> str | None:
        return cupy.numpy_floor(index.requirements(package, release, published[package][release][-1]))

    said = cupy.update(rows, published, numpy)
    document.write(TABLES / "cupy.yml", table)
    return said


def read_jax(version: str, published: Mapping[str, Mapping[str, list[str]]]) -> jax.Found:
    """Return what the index has of a release of JAX; published: by package, its releases with their Pythons."""
    pythons = published["jax"][version]
    requires = tuple(index.requirements("jax", version, pythons[-1]))
    parts = {}
    for major in jax.majors(requires):
        for name in ("jaxlib", f"jax-cuda{major}-plugin"):
            release = jax.newest(requires, name, major, published[name])
            if release:
                parts[name] = release_of(release, published[name][release][0], name)
    plugins = {major: parts.get(f"jax-cuda{major}-plugin") for major in jax.majors(requires)}
    plugins = {major: one for major, one in plugins.items() if one}
    return jax.Found(version, pythons, requires, parts["jaxlib"], plugins)


def jax_lines(side: Executor, today: str) -> list[str]:
    """Bring jax.yml up to date; return what changed."""
    table = document.read(TABLES / "jax.yml")
    asked = pythons(table["rows"])
    names = ["jax", "jaxlib", *(f"jax-cuda{major}-plugin" for major in table["min_cc"])]
    published = dict(zip(names, side.map(index.wheel_pythons, names, repeat(asked)), strict=True))
    said = jax.update(table["rows"], published["jax"], partial(read_jax, published=published), today)
    document.write(TABLES / "jax.yml", table)
    return [f"JAX {line}" for line in said]


def pins_of(name: str, rows: Iterable[Mapping], side: Executor) -> dict[str, str | None]:
    """Return {PyTorch's release: the range of a package that it requires on the oldest Python}; the newest may be left out."""

    def pin(row: Mapping) -> str | None:
        platform = f"{row['platforms']['x86_64']}_x86_64"
        requires = index.requirements("torch", row["version"], row["python"][0], platform)
        return extensions.required(requires, name, row["python"][0])

    rows = list(rows)
    return dict(zip((row["version"] for row in rows), side.map(pin, rows), strict=True))


def _oldest_lock(name: str, version: str, pythons: Iterable[str]) -> str:
    """Return what names the wheels of a release for the oldest of these Pythons that it takes, and newer ones."""
    said = index.NoAnswer(f"no Python for {name} {version}")
    for python in pythons:
        try:
            return index.lock(name, version, python)
        except (
            index.NoAnswer
        ) as problem:  # pages of an index were seen to name older Pythons than the release itself does
            said = problem
    raise said


def read_extension(
    version: str, name: str, published: Mapping[str, list[str]], pins: Mapping[str, str | None] | None
) -> extensions.Found:
    """Return what the index has of a release of a framework that stands on PyTorch; pins: what PyTorch's releases require."""
    pythons = published[version]
    wheels, day = extensions.files(_oldest_lock(name, version, pythons))
    asked = next((one for one in reversed(pythons) if any(extensions.takes(wheel, one) for wheel in wheels)), None)
    told = index.metadata(name, version, asked, extensions.pip_platform(wheels)) if asked else {}
    requires = told.get("requires_dist", []) if pins is None else [extensions.pinning(pins, version)]
    pythons = [one for one in pythons if SpecifierSet(told.get("requires_python", "")).contains(one)]
    return extensions.Found(version, pythons, wheels, day, tuple(filter(None, requires)))


def extension_lines(package: extensions.Package, side: Executor, today: str) -> list[str]:
    """Bring the table of a framework that stands on PyTorch up to date; return what changed."""
    path = TABLES / f"{package.table}.yml"
    table = document.read(path)
    torches = document.read(TABLE)["rows"]
    published = index.wheel_pythons(package.name, pythons(torches)[:-1])
    asked = extensions.missing(table["rows"], published, package)
    pins = pins_of(package.name, torches, side) if package.pinned and asked else None
    reader = partial(read_extension, name=package.name, published=published, pins=pins)
    found = dict(zip(asked, side.map(reader, asked), strict=True))
    said = extensions.update(table["rows"], published, found.__getitem__, package, today)
    document.write(path, table)
    return [f"{package.title} {line}" for line in said]


WRITERS = {
    "torch": pytorch_lines,
    "tensorflow": tensorflow_lines,
    "cupy": cupy_lines,
    "jax": jax_lines,
    **{package.table: partial(extension_lines, package) for package in extensions.PACKAGES},
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
