# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Match the requests for conda environments with the nodes' locks. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TypedDict

from ..documents.parsing import parse
from ..documents.stack import Environment
from ..drift.environments import by_conda
from .locks import lock_texts, request_of

__all__ = ["CondaEnvironment", "conda_environments"]


class CondaEnvironment(TypedDict):
    """A request, its digest, and the host's lock for it; an empty lock has to be solved."""

    name: str
    specs: list[str]
    digest: str
    lock: str
    former: str


def conda_environments(
    environments: Iterable[Mapping],
    platform: Mapping,
    files: Iterable[Mapping],
    channels: Iterable[str],
    packages: Iterable[str],
    relock: bool = False,
) -> dict[str, CondaEnvironment]:
    """Return the environments that conda makes, by name; former: the lock that the host has, of this request or of another.

    platform: {id, version, arch}; files: results of slurp; packages: what there is beside Python
    """
    texts = lock_texts(files)
    found: dict[str, CondaEnvironment] = {}
    for one in environments:
        if not by_conda(parse(Environment, one)):
            continue
        specs = [f"python={one['python']}", *sorted(packages)]
        digest = _digest(specs, list(channels), platform)
        former = texts.get(one["name"], "")
        lock = former if request_of(former) == digest and not relock else ""
        found[one["name"]] = {"name": one["name"], "specs": specs, "digest": digest, "lock": lock, "former": former}
    return found


def _digest(specs: list[str], channels: list[str], platform: Mapping) -> str:
    """Return sixteen hexadecimal digits over everything a solution depends on."""
    request = {"specs": specs, "channels": channels, "platform": [platform[key] for key in ("id", "version", "arch")]}
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:16]
