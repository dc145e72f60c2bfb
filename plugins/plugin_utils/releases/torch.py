# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The row of a release of PyTorch, as its metadata tells it."""

from __future__ import annotations

from typing import Any

from .wheels import Release

SOURCE = "P3"
COLUMNS = (
    "version", "released", "python", "glibc", "platforms", "torchvision", "torchaudio", "builds", "read", "unverified", "note", "sources",
)  # fmt: skip
BUILD_COLUMNS = ("tag", "cuda", "cudnn", "nccl", "nvshmem", "sass", "ptx", "default", "unverified")


def new_row(release: Release, today: str) -> dict[str, Any] | None:
    """Return the row of a release: the build of the general index; None where its metadata does not tell the CUDA."""
    if release.cuda is None:
        return None
    build = {**build_facts(release), "sass": None}
    build |= {"ptx": None, "default": True, "unverified": [name for name in build if build[name] is None] + ["ptx"]}
    row = {"version": release.version, **facts(release), "builds": [build], "read": today, "sources": [SOURCE]}
    if row.setdefault("glibc", None) is None:
        row["unverified"] = ["glibc"]
    return {name: row[name] for name in COLUMNS if name in row}


def facts(release: Release) -> dict[str, Any]:
    """Return the columns of a release."""
    found = {
        "released": release.released,
        "python": release.pythons,
        "glibc": release.glibc,
        "platforms": release.platforms,
    }
    return {name: value for name, value in {**found, **release.companions}.items() if value is not None}


def build_facts(release: Release) -> dict[str, Any]:
    """Return the columns of its build in the general index."""
    cuda = release.cuda
    tag = "cu" + "".join(cuda.split(".")[:2]) if cuda else None
    found = {"tag": tag, "cuda": cuda, "cudnn": release.cudnn, "nccl": release.nccl}
    return found | ({"nvshmem": release.nvshmem} if release.nvshmem else {})
