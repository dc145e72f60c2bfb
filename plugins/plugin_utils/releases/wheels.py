# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the metadata of a release: its wheels for Linux and the CUDA libraries that it pins."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from ..stack.libraries import Requirement, Version, parse_wheel_filename, tomllib
from .index import Index, NoAnswer

LINUX = re.compile(r"((?:many)?linux\w*)_(x86_64|aarch64)")
# PEP 600 gives these names a glibc. It leaves out manylinux1 on purpose: PyTorch's releases called their wheels so
# whatever they were built on (pytorch/builder, release/promote/wheel_to_pypi.sh).
LEGACY = {"manylinux2010": "2.12", "manylinux2014": "2.17"}
ARCHITECTURES = ("x86_64", "aarch64")


@dataclass(frozen=True)
class Wheel:
    """A wheel for Linux; platform is its tag without the architecture."""

    python: str
    platform: str
    arch: str
    day: datetime.date


@dataclass(frozen=True)
class Release:
    """A release: its wheels, what it requires of the x86_64 Linux that most wheels are for, and its companions' versions."""

    version: str
    wheels: tuple[Wheel, ...]
    requires: tuple[str, ...] = ()
    companions: dict[str, str] = field(default_factory=dict)

    @property
    def released(self) -> str:
        """Return the day of the first wheel."""
        return min(one.day for one in self.wheels).isoformat()

    @property
    def pythons(self) -> list[str]:
        """Return the Pythons of the wheels for x86_64."""
        return sorted({one.python for one in self.wheels if one.arch == "x86_64"}, key=Version)

    @property
    def platforms(self) -> dict[str, str]:
        """Return the platform tag of each architecture: of its wheels, the one that the oldest glibc has."""
        tags = {arch: {one.platform for one in self.wheels if one.arch == arch} for arch in ARCHITECTURES}
        return {arch: min(found, key=_order) for arch, found in tags.items() if found}

    @property
    def glibc(self) -> str | None:
        """Return the oldest glibc for x86_64; None where the tag does not tell it."""
        return glibc(self.platforms["x86_64"])

    @property
    def cuda(self) -> str | None:
        """Return the CUDA that the wheel for Linux pins: the toolkit's release, or the minor of its runtime."""
        toolkit, runtime = self._pinned(r"cuda-toolkit"), self._pinned(r"nvidia-cuda-runtime(-cu\d+)?")
        return toolkit or (".".join(runtime.split(".")[:2]) if runtime else None)

    @property
    def cudnn(self) -> str | None:
        """Return the cuDNN that the wheel pins."""
        return self._pinned(r"nvidia-cudnn-cu\d+")

    @property
    def nccl(self) -> str | None:
        """Return the NCCL that the wheel pins."""
        return self._pinned(r"nvidia-nccl-cu\d+")

    @property
    def nvshmem(self) -> str | None:
        """Return the NVSHMEM that the wheel pins; None of releases that do not require it."""
        return self._pinned(r"nvidia-nvshmem-cu\d+")

    def _pinned(self, pattern: str) -> str | None:
        return pinned(self.requires, pattern, self.pythons[-1])


def wheels(lock: str) -> tuple[Wheel, ...]:
    """Return the wheels for Linux that a pylock.toml names; builds of Python without the global lock do not count."""
    found = []
    for one in tomllib.loads(lock)["packages"][0]["wheels"]:
        name, _release, _build, tags = parse_wheel_filename(unquote(one["url"].rpartition("/")[2]))
        for tag in tags:
            linux = LINUX.fullmatch(tag.platform)
            python = re.fullmatch(r"cp3(\d+)", tag.interpreter)
            if linux and python and not tag.abi.endswith("t"):
                found.append(Wheel(f"3.{python[1]}", linux[1], linux[2], one["upload-time"].date()))
    return tuple(found)


def release_of(index: Index, version: str, pythons: Iterable[str], name: str) -> Release:
    """Return a release as the index has it; pythons: those that it may have wheels for, oldest first."""
    bare = Release(version, wheels(oldest_lock(index, name, version, pythons)))
    platform = f"{bare.platforms['x86_64']}_x86_64"
    return replace(bare, requires=tuple(index.requirements(name, version, bare.pythons[-1], platform)))


def oldest_lock(index: Index, name: str, version: str, pythons: Iterable[str]) -> str:
    """Return a lock with the wheels of a release for the oldest of these Pythons that it takes, and newer ones."""
    said = NoAnswer(f"no Python for {name} {version}")
    for python in pythons:
        try:
            return index.lock(name, version, python)
        except NoAnswer as problem:  # pages of an index were seen to name older Pythons than the release itself does
            said = problem
    raise said


def glibc(platform: str) -> str | None:
    """Return the glibc that a platform tag promises to be enough."""
    number = re.fullmatch(r"manylinux_(\d+)_(\d+)", platform)
    return f"{number[1]}.{number[2]}" if number else LEGACY.get(platform)


def pinned(requires: Iterable[str], pattern: str, python: str = "3.11") -> str | None:
    """Return the version that the requirement of this name has on Linux for x86_64; None unless it is one exact version."""
    here = {"platform_system": "Linux", "sys_platform": "linux", "platform_machine": "x86_64", "extra": ""}
    here |= {"python_version": python, "python_full_version": f"{python}.0"}
    for one in map(Requirement, requires):
        if re.fullmatch(pattern, one.name) and (one.marker is None or one.marker.evaluate(here)):
            exact = re.fullmatch(r"==([\d.]+)", str(one.specifier))
            return exact[1] if exact else None
    return None


def _order(platform: str) -> tuple[bool, Version]:
    """Tags that tell no glibc come last."""
    return glibc(platform) is None, Version(glibc(platform) or "0")
