# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of the wheels of cuDNN, NCCL and NVSHMEM: the releases of one package that are for the same machines and require the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.extensions import (
    files,
    pip_platform,
    platforms,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.index import Index
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.wheels import ARCHITECTURES, glibc
from packaging.version import Version

from .document import styled

SOURCE = "Z1"
PACKAGES = tuple(f"nvidia-{library}-cu{major}" for library in ("cudnn", "nccl", "nvshmem") for major in (11, 12, 13))
# The wheels are for any Python 3, so that one of them is enough to be asked with.
PYTHONS = ("3.12",)


@dataclass(frozen=True)
class Found:
    """A release as the index has it: the names of its wheels, the day of its first file, and what its metadata says."""

    wheels: tuple[str, ...]
    released: str
    python: str
    requires: tuple[str, ...]


def read(index: Index, package: str, release: str) -> Found:
    """Return the index's record of a release."""
    wheels, day = files(index.lock(package, release, PYTHONS[0]))
    told = index.metadata(package, release, PYTHONS[0], pip_platform(wheels))
    return Found(wheels, day, told.get("requires_python", ""), tuple(told.get("requires_dist", ())))


def missing(rows: Iterable[Mapping], published: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    """Return the published releases of each package that stand in no row, oldest first."""
    known = {(row["package"], release) for row in rows for release in row["releases"]}
    asked = [(package, release) for package, releases in published.items() for release in releases]
    return sorted(set(asked) - known, key=lambda one: (one[0], Version(one[1])))


def update(
    rows: list, published: Mapping[str, Iterable[str]], found: Callable[[str, str], Found], today: str
) -> list[str]:
    """Write the releases that no row has into the row of those alike, or a new one; return a line for each."""
    said = []
    for package, release in missing(rows, published):
        made = new_row(package, found(package, release), today)
        if not made["platforms"]:
            said.append(f"{package} {release}: no row, as it has no wheels for Linux")
            continue
        row = next((one for one in rows if _alike(one, made)), None)
        if row is None:
            row = styled(made)
            rows.append(row)
        _put(row, release, found(package, release).released, today)
        said.append(f"{package} {release}: new")
    rows.sort(key=lambda row: (row["package"], Version(min(row["releases"], key=Version))))
    return said


def new_row(package: str, found: Found, today: str) -> dict[str, Any]:
    """Return the row that a release belongs to, without it."""
    tags = {arch: tag for name in found.wheels for tag, arch in platforms(name) if tag}
    known = {arch: tags[arch] for arch in ARCHITECTURES if arch in tags}
    floors = {arch: floor for arch, tag in known.items() if (floor := glibc(tag))}
    row = {
        "package": package,
        "python": found.python,
        "platforms": known,
        "glibc": floors,
        "requires": list(found.requires),
    }
    return {**row, "releases": {}, "read": today, "sources": [SOURCE]}


def _alike(row: Mapping, made: Mapping) -> bool:
    return all(row[name] == made[name] for name in ("package", "python", "platforms", "requires"))


def _put(row: Any, release: str, day: str, today: str) -> None:
    """Add a release at its place."""
    found = {**row["releases"], release: day}
    row["releases"] = styled({one: found[one] for one in sorted(found, key=Version)})
    row["read"] = styled(today)
