# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JAX's rows: one for each release, with the plugins for each major of CUDA and what those require of NVIDIA's wheels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from .document import styled
from .releases import ARCHITECTURES, Release

SOURCE = "J1"
# Before it the index had no CUDA: jaxlib 0.4.30 is the first that takes it from the plugins alone.
FIRST = "0.4.30"
EXTRA = re.compile(r"extra == [\"']cuda(\d+)[\"']")
# What a plugin requires of NVIDIA's wheels, by the column of its row; CUDA 13 has them without the major in the name.
LIBRARIES = {"cuda": "cuda-runtime", "cudnn": "cudnn", "nccl": "nccl", "nvcc": "cuda-nvcc"}


@dataclass(frozen=True)
class Found:
    """A release in the index: jax's requirements, its library, and its plugins by CUDA major."""

    version: str
    pythons: list[str]
    requires: tuple[str, ...]
    jaxlib: Release
    plugins: Mapping[str, Release]


def newest(requires: Iterable[str], name: str, extra: str, published: Iterable[str]) -> str | None:
    """Return the newest published release of a package that an extra takes; None where it takes none of them."""
    for text in requires:
        one, found = Requirement(text), EXTRA.search(text)
        if one.name == name and found and found[1] == extra:
            fitting = [release for release in published if SpecifierSet(str(one.specifier)).contains(release)]
            return max(fitting, key=Version, default=None)
    return None


def majors(requires: Iterable[str]) -> list[str]:
    """Return the CUDA majors that a release has a plugin for, the oldest first."""
    found = {match[1] for text in requires if "-plugin" in text and (match := EXTRA.search(text))}
    return sorted(found, key=int)


def update(rows: list, published: Iterable[str], read: Callable[[str], Found], today: str) -> list[str]:
    """Write rows of the releases that there is none of; return a line for each."""
    said = []
    for version in missing(rows, published):
        made = new_row(read(version), today)
        if made:
            rows.append(styled(made))
        said.append(f"{version}: {'new' if made else 'no row, as its wheels do not tell Python, glibc and libraries'}")
    rows.sort(key=lambda row: Version(row["version"]))
    return said


def missing(rows: Iterable[Mapping], published: Iterable[str]) -> list[str]:
    """Return the published releases that could have a row and have none, oldest first."""
    known = {row["version"] for row in rows}
    return sorted((one for one in set(published) - known if Version(one) >= Version(FIRST)), key=Version)


def new_row(found: Found, today: str) -> dict[str, Any] | None:
    """Return the row of a release; None where something of it is not told. arch: those that all plugins are for."""
    parts = [found.jaxlib, *found.plugins.values()]
    if not found.plugins or set(found.jaxlib.platforms) != set(ARCHITECTURES):
        return None
    if any("x86_64" not in one.platforms or not one.glibc for one in parts):
        return None
    plugins = {major: _libraries(one.requires) for major, one in found.plugins.items()}
    if any(set(one) != set(LIBRARIES) for one in plugins.values()):
        return None
    return {
        "version": found.version,
        "released": max(one.released for one in parts),
        "python": [one for one in found.pythons if all(one in part.pythons for part in parts)],
        "glibc": max((str(one.glibc) for one in parts), key=Version),
        "arch": [arch for arch in ARCHITECTURES if all(arch in one.platforms for one in found.plugins.values())],
        "plugins": plugins,
        "numpy": _base(found.requires, "numpy"),
        "ml_dtypes": _base(found.requires, "ml_dtypes"),
        "read": today,
        "sources": [SOURCE],
    }


def _libraries(requires: Iterable[str]) -> dict[str, str]:
    """Return what a plugin requires of NVIDIA's wheels, the lower end of each range first."""
    asked = {re.sub(r"-cu\d+$", "", one.name): _range(one) for one in map(Requirement, requires)}
    return {column: asked[f"nvidia-{name}"] for column, name in LIBRARIES.items() if f"nvidia-{name}" in asked}


def _base(requires: Iterable[str], name: str) -> str:
    """Return what a package without extras requires of another, on any Python."""
    wanted = [one for one in map(Requirement, requires) if one.name.replace("-", "_") == name and not one.marker]
    return _range(wanted[0]) if wanted else ">=0"


def _range(one: Requirement) -> str:
    return ",".join(sorted(str(one.specifier).split(","), reverse=True))
