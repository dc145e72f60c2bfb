# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TensorFlow's rows: the releases of one minor; a new minor is written from what its extra [and-cuda] requires."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from .document import styled
from .releases import Release

SOURCE = "S14"
# What TensorFlow and PyTorch both require, by the names of the table.
LIBRARIES = ("cuda-runtime", "cublas", "cudnn", "nccl")


def update(rows: list, published: Mapping[str, list[str]], read: Callable[[str, str], Release]) -> list[str]:
    """Write the releases of known minors and later ones into the rows; return a line for each change and difference.

    published: each release with the Pythons that it has a wheel for; read: a release as the index has it
    """
    said = []
    first = min(Version(row["version"]) for row in rows)
    for release, pythons in published.items():
        minor = ".".join(release.split(".")[:2])
        known = any(release in row["releases"] for row in rows)
        # A post-release mends the packaging of the release before it.
        if Version(minor) < first or known or Version(release).is_postrelease:
            continue
        alike = [row for row in rows if row["version"] == minor]
        row = next((row for row in alike if list(row["python"]) == pythons), None)
        if row is not None:
            row["releases"] = styled(sorted([*row["releases"], release], key=Version))
        elif alike:  # built alike, for other Pythons
            rows.append(styled({**alike[-1], "releases": [release], "python": pythons}))
        elif made := new_row(minor, read(release, pythons[0])):
            rows.append(styled(made))
        else:
            said.append(f"{release}: no row, as its metadata does not tell its CUDA or its glibc")
            continue
        said.append(f"{release}: new")
    rows.sort(key=lambda row: Version(row["releases"][0]))
    return said


def new_row(minor: str, release: Release) -> dict[str, Any] | None:
    """Return the row of a minor; None where the metadata of its release does not tell its CUDA or its glibc."""
    found = pins(release.requires)
    cuda = next((_floor(value) for name, value in found.items() if name.startswith("cuda-runtime")), None)
    cudnn = next((_floor(value) for name, value in found.items() if name.startswith("cudnn")), None)
    if not (cuda and cudnn and release.glibc):
        return None
    return {
        "version": minor,
        "releases": [release.version],
        "python": release.pythons,
        "glibc": release.glibc,
        "cuda": cuda,
        "cudnn": cudnn,
        "and_cuda": True,
        "pins": found,
        "sass": None,
        "ptx": None,
        "unverified": ["sass", "ptx"],
        "sources": [SOURCE],
    }


def pins(requires: Iterable[str]) -> dict[str, str]:
    """Return what the extra [and-cuda] requires of the libraries that PyTorch brings too."""
    found = {}
    for one in map(Requirement, requires):
        name = re.fullmatch(rf"nvidia-(({'|'.join(LIBRARIES)})-cu\d+)", one.name)
        if name and "and-cuda" in str(one.marker):
            found[name[1]] = _range(str(one.specifier))
    order = [f"{library}-" for library in LIBRARIES]
    return dict(sorted(found.items(), key=lambda pin: [pin[0].startswith(one) for one in order].index(True)))


def _range(specifier: str) -> str:
    """Return a range as the table writes it, the lower end first: >=12.5.82,<13; an exact version as it is."""
    parts = sorted((one.removesuffix(".0") for one in specifier.split(",")), reverse=True)
    return ",".join(parts).removeprefix("==")


def _floor(value: str) -> str | None:
    """Return the minor of the oldest version of a range."""
    found = re.match(r"(?:>=)?(\d+\.\d+)", value)
    return found[1] if found else None
