# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the directories of environments: next to the one in use, named after their content. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ..documents.observed import Environment as Found
from ..documents.observed import Observed
from ..documents.parsing import parse
from ..documents.stack import Environment, System
from ..drift.environments import by_conda, compare_interpreter, compiled_packages
from ..drift.interpreters import planned_home
from ..drift.record import observe
from ..drift.requests import build_digest, request_digest
from . import extras
from .locks import locked_packages

__all__ = ["describe_places", "environment_directory", "lock_files"]


def environment_directory(environment: Mapping, platform: Mapping, lock: str, conda_lock: str = "") -> str:
    """Return the name of the directory for an environment with exactly this content; empty where its lock is not known.

    The wheels of an environment that conda makes are solved in it: of them the request counts, not the lock.
    """
    planned, system = parse(Environment, environment), parse(System, platform)
    text = conda_lock if by_conda(planned) else lock
    if not text:
        return ""
    content = {
        "lock": sorted(line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")),
        "request": request_digest(planned, system) if by_conda(planned) else None,
        "python": planned.python,
        "interpreter": planned_home(planned.interpreter) if planned.interpreter else None,
        "build": asdict(planned.build) if planned.build else None,
        "platform": [system.id, system.version, system.arch],
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return f".{planned.name}-{digest[:12]}"


def lock_files(
    environments: Iterable[Mapping], platform: Mapping, state: Mapping | None, root: str, locks: str
) -> list[dict[str, str]]:
    """Return [{name, path}] of the locks to read: that of an older environment where it answers the request, and that in use does not.

    root: directory of the environments; locks: directory of the locks of those in use
    """
    observed, files = observe(state), []
    for one in environments:
        digest = request_digest(parse(Environment, one), parse(System, platform))
        found = (observed.environments or {}).get(one["name"])
        kept = [k.directory for k in observed.environments_kept if (k.name, k.request) == (one["name"], digest)]
        in_use = found is not None and found.lock is not None and found.lock.request == digest
        older = f"{root}/{kept[0]}/allreduce-lock.txt" if kept and not in_use else ""
        files.append({"name": one["name"], "path": older or f"{locks}/{one['name']}.txt"})
    return files


def describe_places(
    environments: Iterable[Mapping],
    platform: Mapping,
    described: Mapping[str, Mapping[str, Any]],
    plan: Mapping[str, Mapping[str, str]],
    state: Mapping | None,
    conda: Mapping[str, Mapping[str, str]],
    remade: Iterable[str],
) -> dict[str, dict[str, Any]]:
    """Return, by the environment's name, where it is made and what has to be done there.

    {digest: of the request, installed: whether it is there, in use or not, directory: in which it is to be, at: in which it is now or
    is made now, create: whether it is rebuilt, seed: a directory to copy before that, switch: whether it is taken into use, late:
    only after Horovod, and what module environment_switch wants to know: lock, conda_lock, compiled, modules}

    described: see locks.describe_environments; plan: see locks.assign; state: fact gpu_node_state; conda: {name: {at, lock}} of those
    that conda makes; remade: those that it has rebuilt since they were measured
    """
    observed, system = observe(state), parse(System, platform)
    return {
        one["name"]: _described(one, system, described[one["name"]], plan, observed, conda, set(remade))
        for one in environments
    }


def _described(
    environment: Mapping,
    system: System,
    item: Mapping[str, Any],
    plan: Mapping[str, Mapping[str, str]],
    observed: Observed,
    conda: Mapping[str, Mapping[str, str]],
    remade: set[str],
) -> dict[str, Any]:
    planned, lock = parse(Environment, environment), plan[item["digest"]]["lock"]
    found = (observed.environments or {}).get(planned.name)
    of_conda = conda.get(planned.name)
    conda_lock = of_conda["lock"] if of_conda else ""
    directory = environment_directory(environment, asdict(system), lock, conda_lock)
    # A user may have put it elsewhere, and linked to it.
    target = (found.target if found else None) or planned.name
    current = (planned.name if "/" in target else target) if found else ""
    # Where only Horovod is missing, role horovod installs it in its place.
    lacks = directory != current and _lacks_build(planned, system, lock, found)
    work = not item["installed"] or item["lock"] != lock or lacks
    at = (of_conda["at"] if of_conda else directory if work else current) or current or planned.name
    kept = {one.directory for one in observed.environments_kept} if planned.name not in remade else set[str]()
    ready = work and at != current and at in kept
    fresh = work and not ready and (not directory or at != current or _other_interpreter(planned, found))
    return {
        "digest": item["digest"],
        "installed": not work or ready,
        "directory": directory,
        "at": at,
        "create": fresh and not of_conda,
        "seed": current if fresh and found and _is_seed(planned, lock, found) else "",
        "switch": work or bool(found and (not found.target or _is_unrecorded(found, item["digest"]))),
        "late": bool(planned.build) and work and not ready,
        "lock": lock,
        "conda_lock": conda_lock,
        "compiled": compiled_packages(planned),
        "modules": extras.own_modules(environment),
    }


def _lacks_build(planned: Environment, system: System, lock: str, found: Found | None) -> bool:
    if not planned.build or not lock or found is None:
        return bool(planned.build)
    return found.horovod != build_digest(planned, system, locked_packages(lock))


def _is_unrecorded(found: Found, digest: str) -> bool:
    """Return True if the lock of the one in use was not recorded, as in a run that broke after the link was made."""
    return found.lock is None or found.lock.request != digest


def _other_interpreter(planned: Environment, found: Found | None) -> bool:
    return any(one.differs for one in compare_interpreter(planned.name, planned, found, known=True))


def _is_seed(planned: Environment, lock: str, found: Found) -> bool:
    """Return True if most of the environment in use stays: where a framework changes, its libraries do, and they are most of it."""
    same = all(found.packages.get(name) == one for name, one in locked_packages(lock).items() if name in extras.CHOSEN)
    linked = found.target is not None and "/" not in found.target
    return bool(lock) and linked and same and not by_conda(planned) and not _other_interpreter(planned, found)
