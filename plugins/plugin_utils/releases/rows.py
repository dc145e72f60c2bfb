# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of a release that the tables lack, from the metadata of its packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from ..stack.components.cupy import CUPY_ROWS
from ..stack.components.jax import JAX_ROWS
from ..stack.components.tensorflow import TENSORFLOW_ROWS
from ..stack.interpreters import PYTHONS
from ..stack.rows import PublishedRow
from ..stack.tables import Tables
from ..stack.versions import major, matches, minor, version
from . import cupy, extensions, jax, tensorflow, torch
from .index import Index, NoAnswer
from .wheels import release_of

Row = dict[str, Any]
# The release that a constraint takes, and its rows; none where the metadata does not tell what a row has.
Found = tuple[str, list[Row]]
SOURCE = "package index"
# By the minor release: nothing needs packaging where the file is only imported.
OLDEST_FIRST = sorted(PYTHONS, key=lambda one: int(one.partition(".")[2]))


class NoRelease(LookupError):
    """A constraint that no release of the index fits."""


def published_rows(index: Index, tables: Tables, name: str, constraint: str, today: str) -> list[PublishedRow]:
    """Return the rows of the newest release of a component that a constraint takes; none where its metadata does not tell enough.

    Raise NoAnswer where the index gives no answer, NoRelease where it has no such release.
    """
    release, rows = READERS[name](index, tables, constraint, today)
    return [{"component": name, "version": release, "source": SOURCE, "read": today, "row": row} for row in rows]


def _newest(index: Index, package: str, constraint: str) -> str:
    """Return the newest release of a package that a constraint takes: of those for the Python that is taken first, else for any other."""
    silent: list[NoAnswer] = []
    for pythons in (PYTHONS[:1], PYTHONS[1:]):
        try:
            found = _taken(index.releases(package, pythons), constraint)
        except NoAnswer as problem:
            silent.append(problem)
            continue
        if found:
            return found
    raise silent[0] if len(silent) == 2 else NoRelease(constraint)


def _taken(published: Iterable[str], constraint: str) -> str | None:
    """Return the last of some releases, the oldest first, that a constraint takes."""
    return next((release for release in reversed([*published]) if matches(release, constraint)), None)


def _pytorch(index: Index, tables: Tables, constraint: str, today: str) -> Found:
    release = _newest(index, "torch", constraint)
    return release, _some(torch.new_row(release_of(index, release, OLDEST_FIRST, "torch"), today))


def _tensorflow(index: Index, tables: Tables, constraint: str, today: str) -> Found:
    release = _newest(index, "tensorflow", constraint)
    found = release_of(index, release, OLDEST_FIRST, "tensorflow")
    alike = [row for row in tables.rows(TENSORFLOW_ROWS) if minor(row["releases"][0]) == minor(release)]
    return release, _some(tensorflow.row_beside(alike, release, found.pythons, lambda version, pythons: found))


def _cupy(index: Index, tables: Tables, constraint: str, today: str) -> Found:
    """Return a row for each package, as each is built for other Pythons."""
    known = tables.rows(CUPY_ROWS)
    newest = {}
    for package in cupy.packages(known):
        with suppress(NoRelease):
            newest[package] = _newest(index, package, constraint)
    if not newest:
        raise NoRelease(constraint)
    release = max(newest.values(), key=version)
    alike = [row for row in known if row["series"] == int(major(release))]
    return release, [_cupy_row(index, alike, package, release) for package, one in newest.items() if one == release]


def _cupy_row(index: Index, alike: list[Any], package: str, release: str) -> Row:
    found = release_of(index, release, OLDEST_FIRST, package)
    floor = None if alike else cupy.numpy_floor(found.requires)
    return {**cupy.new_row(int(major(release)), found.pythons, alike, floor), "wheels": {package: [release]}}


def _jax(index: Index, tables: Tables, constraint: str, today: str) -> Found:
    release = _newest(index, "jax", constraint)
    published: dict[str, Mapping[str, list[str]]] = {"jax": {release: OLDEST_FIRST}}
    for package in ("jaxlib", *(f"jax-cuda{cuda}-plugin" for cuda in tables.beside(JAX_ROWS)["min_cc"])):
        published[package] = dict.fromkeys(index.releases(package, PYTHONS[:1]), OLDEST_FIRST)
    return release, _some(jax.new_row(jax.read(index, release, published), today))


def _extension(package: extensions.Package, index: Index, tables: Tables, constraint: str, today: str) -> Found:
    release = _newest(index, package.name, constraint)
    found = extensions.read(index, release, package.name, {release: OLDEST_FIRST}, None)
    return release, _some(extensions.new_row(found, package, today))


def _some(row: Row | None) -> list[Row]:
    return [row] if row else []


# What the index has as source only is left out, as its metadata takes a build, and what PyTorch's releases name, which are many.
READERS: dict[str, Callable[[Index, Tables, str, str], Found]] = {
    "pytorch": _pytorch,
    "tensorflow": _tensorflow,
    "cupy": _cupy,
    "jax": _jax,
    **{one.table: partial(_extension, one) for one in extensions.PACKAGES if not (one.pinned or one.torch)},
}
