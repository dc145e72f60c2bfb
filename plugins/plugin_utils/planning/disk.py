# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell whether there is room for a stack on a host."""

from __future__ import annotations

from collections.abc import Mapping

from ..documents.parsing import parse
from ..documents.stack import Environment, System
from ..drift.record import observe
from ..drift.requests import request_digest


def disk_shortage(stack: Mapping, state: Mapping) -> list[str]:
    """Return one sentence per file system that is too small for what is still to be installed.

    [] when all fits or is unknown. Directories with equal free space are taken for one file system. An environment that is replaced
    stays until the new one works, so both take their room.
    """
    free: Mapping[str, int] = state.get("disk_free_mib") or {}
    needs: dict[int, list[Mapping]] = {}
    for part in stack.get("disk_mib") or []:
        room = free.get(part["directory"], free.get("/"))
        if room is not None and not _installed(part, stack, state):
            needs.setdefault(room, []).append(part)
    return [_sentence(room, parts) for room, parts in needs.items() if sum(part["mib"] for part in parts) > room]


def _installed(part: Mapping, stack: Mapping, state: Mapping) -> bool:
    component, name = _owner(part)
    if component == "driver":
        have = (state.get("driver") or {}).get("installed") or ""
        return have.split(".")[0] == stack["driver"]["branch"]
    return component == "environment" and _has_environment(name or "", stack, state)


def _has_environment(name: str, stack: Mapping, state: Mapping) -> bool:
    """Return whether the environment is there, in use or kept, as it is asked for."""
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


def _sentence(room: int, parts: list[Mapping]) -> str:
    directories = " and ".join(sorted({part["directory"] for part in parts}))
    what = ", ".join(dict.fromkeys(part["part"] for part in parts))
    needed = sum(part["mib"] for part in parts)
    return (
        f"{room} MiB are free under {directories}, but {what} need about {needed} MiB; "
        f"free some space or put a larger disk there."
    )
