# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Match the requests for conda environments with the nodes' locks. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import TypedDict

from ...module_utils.packages import conda_lock
from ..documents.parsing import parse
from ..documents.stack import Environment
from ..drift.environments import by_conda
from ..problems.problem import Problem
from ..problems.text import describe
from .locks import lock_texts, request_of
from .pins import LONGEST, shown

__all__ = ["CondaEnvironment", "conda_environments", "conda_problem"]

# Where conda finds a channel that is named without an address, and Anaconda's own.
CHANNELS = "https://conda.anaconda.org/"
DEFAULTS = tuple(f"https://repo.anaconda.com/pkgs/{name}" for name in ("main", "r"))


class CondaEnvironment(TypedDict):
    """A request, its digest, and the host's lock for it; an empty lock has to be solved."""

    name: str
    specs: list[str]
    digest: str
    lock: str
    former: str
    refused: str
    relock: bool


def conda_environments(
    environments: Iterable[Mapping],
    platform: Mapping,
    files: Iterable[Mapping],
    channels: Iterable[str],
    packages: Iterable[str],
    relock: bool = False,
) -> dict[str, CondaEnvironment]:
    """Return the environments that conda makes, by name; former: the lock that the host has, of this request or of another.

    refused, relock: see locks.describe_environments

    platform: {id, version, arch}; files: results of module read_file; packages: those in addition to Python
    """
    texts = lock_texts(files)
    found: dict[str, CondaEnvironment] = {}
    for one in environments:
        if not by_conda(parse(Environment, one)):
            continue
        specs = [f"python={one['python']}", *sorted(packages)]
        digest = _digest(specs, list(channels), platform)
        former = texts.get(one["name"], "")
        answers = request_of(former) == digest
        problem = conda_problem(former, channels) if answers else None
        found[one["name"]] = {
            "name": one["name"],
            "specs": specs,
            "digest": digest,
            "lock": former if answers and problem is None and not relock else "",
            "former": former,
            "refused": describe(problem) if problem else "",
            "relock": relock,
        }
    return found


def conda_problem(text: str, channels: Iterable[str]) -> Problem | None:
    """Return the problem of a text that is no explicit lock of packages of these channels only, each with its SHA-256; else None."""
    if len(text) > LONGEST:
        return Problem("lock_long", str(len(text)))
    places = {place for channel in channels for place in _addresses(channel)}
    for line in text.split("\n"):
        package = re.fullmatch(r"[!-~]+", line) and line != conda_lock.MARK and not line.startswith("#")
        if not package and not (line in ("", conda_lock.MARK) or line.startswith("#") and line.isprintable()):
            return Problem("conda_lock_line", shown(line))
        if package and (set("$\\") & set(line) or "/../" in line or conda_lock.channel(line) not in places):
            return Problem("conda_lock_line", shown(line))
    _packages, problems = conda_lock.parse(text)
    return Problem("conda_lock_line", shown(str(problems[0]["subject"]))) if problems else None


def _addresses(channel: str) -> Iterable[str]:
    """Return the addresses below which a channel has a directory for each platform."""
    if "://" in channel or channel.startswith("/"):
        return (channel.rstrip("/"), f"file://{channel.rstrip('/')}")
    return DEFAULTS if channel == "defaults" else (f"{CHANNELS}{channel.strip('/')}",)


def _digest(specs: list[str], channels: list[str], platform: Mapping) -> str:
    """Return sixteen hexadecimal digits over everything a solution depends on."""
    request = {"specs": specs, "channels": channels, "platform": [platform[key] for key in ("id", "version", "arch")]}
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:16]
