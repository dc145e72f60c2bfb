# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheels that one node gets from the index and gives to others: those of the lock, whatever that node says. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, unquote, urlsplit

with suppress(ImportError):  # ansible-core depends on it; only ansible-test's import check runs without it
    from packaging.utils import canonicalize_name

from ..documents.files import is_wheel_of
from ..problems.problem import Problem, ProblemError
from ..stack.libraries import tomllib
from .pins import LONGEST, Pin, read_pins, shown

__all__ = ["offered_wheels", "planned_wheels"]

LARGEST = 16 << 30  # bytes of a wheel


def planned_wheels(pylock: str, lock: str) -> list[dict[str, Any]]:
    """Return [{file, sha256, url, bytes}] of the wheels to download, one for each package of the lock. ProblemError where that cannot be.

    bytes is missing where the index does not tell it.

    pylock: what uv on the node makes of the lock (PEP 751): for each package the one wheel that it would install
    """
    pins, found = read_pins(lock), {}
    for package in _packages(pylock):
        name = str(canonicalize_name(str(package.get("name"))))
        if name not in pins or name in found:
            raise ProblemError(Problem("wheels_other", shown(name)))
        found[name] = _wheel(name, pins[name], package.get("wheels"))
    lacking = sorted(name for name, pin in pins.items() if name not in found and not pin.conditional)
    if lacking:
        raise ProblemError(Problem("wheels_other", shown(lacking[0])))
    return sorted(found.values(), key=lambda one: one["file"])


def offered_wheels(planned: list[Mapping[str, Any]], said: object) -> list[dict[str, Any]]:
    """Return [{file, sha256, bytes}] of the wheels to copy: those that were planned, with the sizes that the node says."""
    sizes = [one.get("bytes") if isinstance(one, Mapping) else None for one in said] if isinstance(said, list) else []
    if len(sizes) != len(planned) or not all(_is_size(size) for size in sizes):
        raise ProblemError(Problem("wheels_other", "bytes"))
    return [
        {"file": one["file"], "sha256": one["sha256"], "bytes": size} for one, size in zip(planned, sizes, strict=True)
    ]


def _is_size(size: object) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and 0 < size <= LARGEST


def _packages(pylock: str) -> list[Mapping[str, Any]]:
    try:
        packages = tomllib.loads(pylock)["packages"] if tomllib and len(pylock) <= LONGEST else None
    except (ValueError, KeyError, RecursionError):
        packages = None
    if not isinstance(packages, list) or not all(isinstance(one, Mapping) for one in packages):
        raise ProblemError(Problem("wheels_unreadable", "pylock.toml"))
    return packages


def _wheel(name: str, pin: Pin, wheels: object) -> dict[str, Any]:
    """Return the first of a package's wheels that the lock has."""
    for one in wheels if isinstance(wheels, list) else ():
        url = _address(one) if isinstance(one, Mapping) else ""
        hashes = one.get("hashes") if url else None
        digest = str(hashes.get("sha256")) if isinstance(hashes, Mapping) else ""
        file = unquote(urlsplit(url).path.rpartition("/")[2]) if url else ""
        if digest in pin.hashes and is_wheel_of(file, name, pin.version):
            return {
                "file": file,
                "sha256": digest,
                "url": url,
                **({"bytes": one["size"]} if _is_size(one.get("size")) else {}),
            }
    raise ProblemError(Problem("wheels_other", shown(name)))


def _address(wheel: Mapping[str, Any]) -> str:
    """Return where a wheel is; empty where nothing can be fetched from."""
    url, path = wheel.get("url"), wheel.get("path")
    if isinstance(path, str) and path.startswith("/"):
        return f"file://{quote(path)}"
    valid = isinstance(url, str) and url.isascii() and url.isprintable()
    try:
        return str(url) if valid and urlsplit(str(url)).scheme in ("https", "http", "file") else ""
    except ValueError:
        return ""
