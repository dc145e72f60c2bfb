# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Horovod of the environments: who compiles which build, who gets its wheel, and who has it already. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ..documents.files import is_wheel_of
from ..documents.observed import Environment as Found
from ..documents.observed import Observed
from ..documents.parsing import parse
from ..documents.stack import Environment, System
from ..drift.record import observe
from ..drift.requests import build_digest
from .locks import locked_packages

__all__ = ["assign_builds", "describe_builds", "wheel_of"]


def describe_builds(
    environments: Iterable[Mapping], platform: Mapping, locks: Mapping[str, str], state: Mapping | None
) -> dict[str, dict[str, Any]]:
    """Return a host's builds by the names of their environments, {name, digest, build, wheel, installed}.

    locks: text of the lock of each environment, empty before it was solved; state: fact gpu_node_state
    """
    observed, system = observe(state), parse(System, platform)
    return {
        one["name"]: _described(one, system, locks.get(one["name"]) or "", observed)
        for one in environments
        if one.get("build")
    }


def _described(environment: Mapping, system: System, lock: str, observed: Observed) -> dict[str, Any]:
    planned = parse(Environment, environment)
    digest = build_digest(planned, system, locked_packages(lock))
    found, wheel = (observed.environments or {}).get(planned.name), observed.horovod_builds.get(digest)
    return {
        "name": planned.name,
        "digest": digest,
        "build": environment["build"],
        "wheel": wheel_of(asdict(wheel), environment["build"]["version"]) if wheel else None,
        "installed": found is not None and found.horovod == digest and _is_whole(found),
    }


def wheel_of(said: object, version: str) -> dict[str, str] | None:
    """Return {file, sha256} of what a node says of its wheel; None where that is not a wheel of this Horovod."""
    file, digest = (said.get("file"), said.get("sha256")) if isinstance(said, Mapping) else (None, None)
    if not is_wheel_of(file, "horovod", version) or not re.fullmatch(r"[0-9a-f]{64}", str(digest)):
        return None
    return {"file": str(file), "sha256": str(digest)}


def _is_whole(found: Found) -> bool:
    return "horovod" in found.packages and "horovod" not in found.changed_files


def assign_builds(hosts: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Map the digest of each build to {host, environment, version, wheel, receivers}.

    The first host that has the wheel gives it to the others; without any, the first that asks for it compiles, in that environment.
    Receivers are the other hosts that neither have it nor had it installed. hosts: name -> its described builds, in the play's order.
    """
    plan: dict[str, dict[str, Any]] = {}
    builds = [(host, one) for host, described in hosts.items() for one in described.values()]
    for host, one in builds:
        known = plan.get(one["digest"])
        if known is None or (one["wheel"] and not known["wheel"]):
            plan[one["digest"]] = {
                "host": host,
                "environment": one["name"],
                "version": one["build"]["version"],
                "wheel": one["wheel"],
                "receivers": [],
            }
    for host, one in builds:
        chosen = plan[one["digest"]]
        if not (one["wheel"] or one["installed"] or host == chosen["host"] or host in chosen["receivers"]):
            chosen["receivers"].append(host)
    return plan
