# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheels of NVIDIA's libraries, a package for each CUDA major: what is released for which."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TypedDict

from .rows import Arch
from .tables import Subject, Tables


class WheelRow(TypedDict):
    """Releases of one package whose wheels are for the same machines; glibc: what is known to be enough, by architecture."""

    package: str
    platforms: dict[Arch, str]
    glibc: dict[Arch, str]
    releases: dict[str, str]


class WheelTable(TypedDict):
    """Facts that hold from a release on, by CUDA major: of NVSHMEM, the first compute capability; of JAX, what its plugin requires."""

    sources: dict[str, str]
    nvshmem_min_cc: dict[str, dict[str, str]]
    nvshmem_of_jax: dict[str, dict[str, str]]


WHEELS = Subject("nvidia_wheels", WheelRow, WheelTable)


@cache
def released(tables: Tables, library: str) -> tuple[tuple[str, str], ...]:
    """Return (release, CUDA major) of a library, such as cudnn, in the order of the table."""
    return tuple(_released(tables, f"nvidia-{library}-cu"))


def _released(tables: Tables, package: str) -> Iterator[tuple[str, str]]:
    for row in tables.rows(WHEELS):
        if row["package"].startswith(package):
            yield from ((release, row["package"].removeprefix(package)) for release in row["releases"])
