# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The row of a release of a framework that stands on PyTorch, which is one package: its wheels, and the PyTorch that it requires."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from ..stack.libraries import Requirement, SpecifierSet, Version, parse_wheel_filename, tomllib
from .index import Index
from .wheels import ARCHITECTURES, LINUX, glibc, oldest_lock

# How packages and extras are named that are for one major of CUDA.
CUDA = re.compile(r"(?:^|-)cu(1[1-9])$")


@dataclass(frozen=True)
class Package:
    """A framework: its package, its table, the oldest release that gets a row, and the source that rows name.

    title: what it is called; pinned: whether it is PyTorch that requires it, one release each; torch: the range that
    every release takes, kept by hand, of a package that the index has as source only; compiled: whether its own code is
    compiled for one major of CUDA
    """

    name: str
    table: str
    title: str
    first: str
    source: str
    pinned: bool = False
    torch: str = ""
    compiled: bool = False


PACKAGES = (
    Package("vllm", "vllm", "vLLM", "0.9.0", "V2", compiled=True),
    Package("lightning", "lightning", "Lightning", "2.0.0", "L1"),
    Package("triton", "triton", "Triton", "2.0.0", "T2", pinned=True),
    Package("deepspeed", "deepspeed", "DeepSpeed", "0.14.0", "Q1", torch=">=2.0.0"),
    Package("flash-attn", "flash_attn", "FlashAttention", "2.8.0", "F1", torch=">=2.2"),
    Package("transformer-engine", "transformer_engine", "Transformer Engine", "2.9.0", "Y1", torch=">=2.6"),
)


@dataclass(frozen=True)
class Found:
    """A release as the index has it: the names of its wheels, the day of its first file, and what it requires."""

    version: str
    pythons: list[str]
    wheels: tuple[str, ...]
    released: str
    requires: tuple[str, ...]


def read(
    index: Index, version: str, name: str, published: Mapping[str, list[str]], pins: Mapping[str, str | None] | None
) -> Found:
    """Return the index's record of a release; pins: what PyTorch's releases require, of a package that they pin."""
    pythons = published[version]
    wheels, day = files(oldest_lock(index, name, version, pythons))
    asked = next((one for one in reversed(pythons) if any(takes(wheel, one) for wheel in wheels)), None)
    told = index.metadata(name, version, asked, pip_platform(wheels)) if asked else {}
    requires = told.get("requires_dist", []) if pins is None else [pinning(pins, version)]
    pythons = [one for one in pythons if SpecifierSet(told.get("requires_python", "")).contains(one)]
    return Found(version, pythons, wheels, day, tuple(filter(None, requires)))


def files(lock: str) -> tuple[tuple[str, ...], str]:
    """Return the names of the wheels for Linux that a pylock.toml names, and the day of the first file."""
    package = tomllib.loads(lock)["packages"][0]
    found = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
    names = (unquote(one["url"].rpartition("/")[2]) for one in package.get("wheels", ()))
    day = min(one["upload-time"].date() for one in found).isoformat()
    return tuple(name for name in names if platforms(name)), day


def platforms(name: str) -> list[tuple[str | None, str]]:
    """Return (platform tag, architecture) for which a wheel is: (None, each) of one that has no compiled code."""
    found: list[tuple[str | None, str]] = []
    for tag in sorted(parse_wheel_filename(name)[3], key=str):
        linux = LINUX.fullmatch(tag.platform)
        if linux:
            found.append((linux[1], linux[2]))
        if tag.platform == "any":
            found += [(None, arch) for arch in ARCHITECTURES]
    return found


def takes(name: str, python: str) -> bool:
    """Return True if a wheel is for a Python: built for it, for the stable interface of an older one, or for any."""
    for tag in parse_wheel_filename(name)[3]:
        built = re.fullmatch(r"cp3(\d+)", tag.interpreter)
        if tag.interpreter == "py3" or (built and tag.abi == tag.interpreter and f"3.{built[1]}" == python):
            return True
        if built and tag.abi == "abi3" and Version(f"3.{built[1]}") <= Version(python):
            return True
    return False


def pip_platform(wheels: Iterable[str]) -> str | None:
    """Return the platform to ask pip with; None where any machine's wheel is the same."""
    for name in wheels:
        for tag in sorted(tag.platform for tag in parse_wheel_filename(name)[3]):
            if tag.endswith("x86_64") and LINUX.fullmatch(tag):
                return tag
    return None


def new_row(found: Found, package: Package, today: str) -> dict[str, Any] | None:
    """Return the row of a release; None where it has no wheels or does not say which PyTorch it takes."""
    if package.torch:
        return _source_row(found, package, today)
    pythons = [one for one in found.pythons if any(takes(name, one) for name in found.wheels)]
    places = {arch: tag for name in found.wheels for tag, arch in platforms(name)}
    torch = required(found.requires, "torch", pythons[-1]) if pythons else None
    if "x86_64" not in places or torch is None:
        return None
    tag, cuda = places["x86_64"], cuda_of(found.requires) if package.compiled else None
    return {
        "version": found.version,
        "released": found.released,
        "python": pythons,
        **({"glibc": glibc(tag)} if tag else {}),
        "arch": [arch for arch in ARCHITECTURES if arch in places],
        "torch": torch,
        **({"cuda": cuda} if cuda else {}),
        "read": today,
        "sources": [package.source],
    }


def _source_row(found: Found, package: Package, today: str) -> dict[str, Any]:
    """Return the row of what is compiled, or packed, where it is needed."""
    return {
        "version": found.version,
        "released": found.released,
        "python": found.pythons,
        "arch": list(ARCHITECTURES),
        "torch": package.torch,
        "read": today,
        "sources": [package.source],
    }


def required(requires: Iterable[str], name: str, python: str) -> str | None:
    """Return the range that a package requires of another on Linux for x86_64, the lower end first; None where it does not."""
    here = {"platform_system": "Linux", "sys_platform": "linux", "platform_machine": "x86_64", "extra": ""}
    here |= {"python_version": python, "python_full_version": f"{python}.0"}
    for one in map(Requirement, requires):
        if one.name == name and (one.marker is None or one.marker.evaluate(here)):
            return ",".join(sorted(str(one.specifier).split(","), reverse=True)) or ">=0"
    return None


def cuda_of(requires: Iterable[str]) -> str | None:
    """Return the one major of CUDA that what a package always requires is named for, as in nvidia-cutlass-dsl[cu13]; None without."""
    always = [one for one in map(Requirement, requires) if one.marker is None]
    named = [CUDA.search(name) for one in always for name in (one.name, *one.extras)]
    found = {match[1] for match in named if match}
    return found.pop() if len(found) == 1 else None


def pinning(pins: Mapping[str, str | None], version: str) -> str | None:
    """Return the range of the PyTorch releases that take a release, as a requirement; None where none does, or others in between.

    pins: by PyTorch's release, the range that it requires
    """
    order = sorted(pins, key=Version)
    takers = [release for release, pin in pins.items() if pin and SpecifierSet(pin).contains(version)]
    places = [order.index(release) for release in takers]
    if not places or max(places) - min(places) + 1 != len(places):
        return None
    first, last = order[min(places)], order[max(places)]
    return f"torch=={first}" if first == last else f"torch>={first},<={last}"
