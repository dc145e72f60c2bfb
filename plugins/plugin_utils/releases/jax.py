# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The row of a release of JAX: the plugins for each major of CUDA and what those require of NVIDIA's wheels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..stack.libraries import Requirement, SpecifierSet, Version
from .index import Index
from .wheels import ARCHITECTURES, Release, release_of

SOURCE = "J1"
EXTRA = re.compile(r"extra == [\"']cuda(\d+)[\"']")
# What a plugin requires of NVIDIA's wheels, by the column of its row; CUDA 13 has them without the major in the name.
LIBRARIES = {"cuda": "cuda-runtime", "cudnn": "cudnn", "nccl": "nccl", "nvcc": "cuda-nvcc"}


@dataclass(frozen=True)
class Found:
    """A release in the index: jax's requirements, its library, and its plugins by CUDA major."""

    version: str
    pythons: list[str]
    requires: tuple[str, ...]
    jaxlib: Release | None
    plugins: Mapping[str, Release]


def read(index: Index, version: str, published: Mapping[str, Mapping[str, list[str]]]) -> Found:
    """Return the index's record of a release of JAX; published: by package, its releases with their Pythons."""
    told = index.metadata("jax", version, published["jax"][version][-1])
    requires = tuple(told.get("requires_dist", []))
    allowed = SpecifierSet(told.get("requires_python", ""))
    pythons = [one for one in published["jax"][version] if allowed.contains(one)]
    known = [major for major in majors(requires) if f"jax-cuda{major}-plugin" in published]
    parts = {}
    for major in known:
        for name in ("jaxlib", f"jax-cuda{major}-plugin"):
            release = newest(requires, name, major, published[name])
            if release:
                parts[name] = release_of(index, release, published[name][release], name)
    plugins = {major: parts.get(f"jax-cuda{major}-plugin") for major in known}
    found = {major: one for major, one in plugins.items() if one}
    return Found(version, pythons, requires, parts.get("jaxlib"), found)


def newest(requires: Iterable[str], name: str, extra: str, published: Iterable[str]) -> str | None:
    """Return the newest published release of a package that an extra takes; None where it takes none of them."""
    for requirement in requires:
        one, found = Requirement(requirement), EXTRA.search(requirement)
        if one.name == name and found and found[1] == extra:
            fitting = [release for release in published if SpecifierSet(str(one.specifier)).contains(release)]
            return max(fitting, key=Version, default=None)
    return None


def majors(requires: Iterable[str]) -> list[str]:
    """Return the CUDA majors that a release has a plugin for, the oldest first."""
    found = {match[1] for one in requires if "-plugin" in one and (match := EXTRA.search(one))}
    return sorted(found, key=int)


def new_row(found: Found, today: str) -> dict[str, Any] | None:
    """Return the row of a release; None where something of it is not told. arch: those that all plugins are for."""
    if not found.plugins or not found.jaxlib or set(found.jaxlib.platforms) != set(ARCHITECTURES):
        return None
    parts = [found.jaxlib, *found.plugins.values()]
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
    """Return the versions that a plugin requires of NVIDIA's wheels, the lower end of each range first."""
    asked = {re.sub(r"-cu\d+$", "", one.name): _range(one) for one in map(Requirement, requires)}
    return {column: asked[f"nvidia-{name}"] for column, name in LIBRARIES.items() if f"nvidia-{name}" in asked}


def _base(requires: Iterable[str], name: str) -> str:
    """Return the range that a package without extras requires of another, on any Python."""
    wanted = [one for one in map(Requirement, requires) if one.name.replace("-", "_") == name and not one.marker]
    return _range(wanted[0]) if wanted else ">=0"


def _range(one: Requirement) -> str:
    return ",".join(sorted(str(one.specifier).split(","), reverse=True))
