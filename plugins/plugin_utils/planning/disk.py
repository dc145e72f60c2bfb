# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell whether there is room for a stack on a host."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ..documents.comparison import Status
from ..documents.parsing import parse
from ..documents.stack import Environment, Package, System
from ..drift.packages import compare_packages
from ..drift.record import observe
from ..drift.requests import request_digest
from ..problems.sentence import Sentence

# What an environment fills: its own directory, and before that the one into which wheels are downloaded and unpacked.
ENVIRONMENTS = ("/opt/allreduce/envs", "/opt/allreduce/cache")


def disk_shortage(stack: Mapping, state: Mapping) -> list[Sentence]:
    """Return one sentence per file system that is too small for what is still to be installed.

    [] when all fits or is unknown. Directories with equal free space are taken for one file system. An environment that is replaced
    stays until the new one works, so both take their room.
    """
    free: Mapping[str, int] = state.get("disk_free_mib") or {}
    needs: dict[int, list[tuple[str, Mapping]]] = {}
    for part in stack.get("disk_mib") or []:
        if not _installed(part, stack, state):
            for directory in _directories(part, free):
                needs.setdefault(free.get(directory, free.get("/", -1)), []).append((directory, part))
    return [
        _sentence(room, found)
        for room, found in needs.items()
        if room >= 0 and sum(part["mib"] for part in _parts(found)) > room
    ]


def _directories(part: Mapping, free: Mapping[str, int]) -> list[str]:
    """Return the directories that are filled; of those that are mounts of their own, which counts, the mounts."""
    if _owner(part)[0] != "environment":
        return [part["directory"]]
    within = free.get(part["directory"])
    return list(dict.fromkeys(one if free.get(one, within) != within else part["directory"] for one in ENVIRONMENTS))


def _parts(found: list[tuple[str, Mapping]]) -> list[Mapping]:
    """Return each part once: in two directories of one file system, files are shared."""
    return list({id(part): part for _directory, part in found}.values())


def _installed(part: Mapping, stack: Mapping, state: Mapping) -> bool:
    component, name = _owner(part)
    if component == "driver":
        have = (state.get("driver") or {}).get("installed") or ""
        return have.split(".")[0] == (stack["driver"] or {}).get("branch")
    if component == "environment":
        return _has_environment(name or "", stack, state)
    return _has_packages(component, stack, state)


def _has_packages(component: str, stack: Mapping, state: Mapping) -> bool:
    """Return True if all packages of a component are there, in its version."""
    planned = [parse(Package, one) for one in (stack.get(component) or {}).get("packages") or []]
    found = compare_packages(component, planned, observe(state))
    return bool(found) and all(one.status is Status.AS_PLANNED for one in found)


def _has_environment(name: str, stack: Mapping, state: Mapping) -> bool:
    """Return True if the environment is there, in use or kept, as it is asked for."""
    observed = observe(state)
    found = (observed.environments or {}).get(name)
    if found is None:
        return False
    planned = (one for one in stack["environments"] if one["name"] == name)
    wanted = {request_digest(parse(Environment, one), parse(System, stack["os"])) for one in planned}
    kept = {one.request for one in observed.environments_kept if one.name == name}
    return bool(wanted & {found.lock.request if found.lock else None, *kept})


def _owner(part: Mapping) -> tuple[str, str | None]:
    """Return the component, and of environments the name; a lock of an older collection has both in ``part`` alone."""
    if "component" in part:
        return part["component"], part.get("name")
    component, _space, name = part["part"].partition(" ")
    return component, name or None


def _sentence(room: int, found: list[tuple[str, Mapping]]) -> Sentence:
    directories = " and ".join(sorted({directory for directory, _part in found}))
    parts = _parts(found)
    what = ", ".join(dict.fromkeys(part["part"] for part in parts))
    return Sentence(
        f"{_size(room, math.floor)} are free under {directories}, but about "
        f"{_size(sum(part['mib'] for part in parts), math.ceil)} are needed for {what}",
        "free some space or put a larger disk there",
    )


def _size(mib: int, rounded: Callable[[float], int]) -> str:
    """Return a size in MiB or GiB; what is free is rounded down and what is needed up, so that both are never the same."""
    return f"{mib} MiB" if mib < 1024 else f"{rounded(mib / 102.4) / 10:.1f} GiB"
