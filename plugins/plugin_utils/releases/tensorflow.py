# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The row of a release of TensorFlow: like those of its minor, else from what its extra [and-cuda] requires."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..stack.libraries import Requirement
from .wheels import Release

SOURCE = "S14"
# What TensorFlow and PyTorch both require, by the names of the table.
LIBRARIES = ("cuda-runtime", "cublas", "cudnn", "nccl")


def row_beside(
    alike: Sequence[Mapping[str, Any]], release: str, pythons: list[str], read: Callable[[str, list[str]], Release]
) -> dict[str, Any] | None:
    """Return the row of a release; alike: the rows of its minor, whose releases are built alike, for other Pythons."""
    if alike:
        return {**alike[-1], "releases": [release], "python": pythons}
    return new_row(".".join(release.split(".")[:2]), read(release, pythons))


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
    """Return the ranges that the extra [and-cuda] requires of the libraries that PyTorch brings too."""
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
