# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell from what was measured whether the environments of all nodes are as planned, so that their locks need not be read. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ..documents.parsing import parse
from ..documents.stack import Environment, System
from ..drift.environments import by_conda, compare_environments
from ..drift.record import observe
from ..drift.requests import build_digest, request_digest
from .builds import wheel_of

__all__ = ["are_settled"]


def are_settled(
    nodes: Iterable[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]], kept: Mapping[str, str] | None = None
) -> bool:
    """Return True if every planned environment is in use, has no drift, and was made from the same lock as the others, and if some
    node keeps the wheel of each Horovod.

    nodes: (gpu_stack, gpu_node_state) of each node; kept: digest of a request -> the lock that the controller keeps, None where it
    keeps none. False says only that the locks have to be read: also where a fact is missing, or where conda makes an environment, of
    which module conda_env tells what is to be done.
    """
    made: dict[object, object] = {}
    built, wheels = set[str](), set[str]()
    for stack, state in nodes:
        if not stack or not state:
            return False
        system, observed = parse(System, stack["os"]), observe(state)
        planned = tuple(parse(Environment, one) for one in stack["environments"])
        if any(one.differs for one in compare_environments(planned, system, observed)):
            return False
        for one in planned:
            found = (observed.environments or {}).get(one.name)
            if found is None or found.lock is None or by_conda(one):
                return False
            build = build_digest(one, system, found.lock.packages) if one.build else None
            content = _content(found.target or "", one.name)
            if not content or build not in (None, found.horovod):
                return False
            if kept is not None and _digest(kept.get(request_digest(one, system), "")) != found.lock.digest:
                return False
            # What is asked for has one lock, to the byte; what is more than that the same has one content, whose digest names the directory.
            whole = repr({**asdict(one), "name": None, "platform": asdict(system)})
            answers = {request_digest(one, system): (found.lock.packages, found.lock.digest), whole: content}
            if any(made.setdefault(asked, answer) != answer for asked, answer in answers.items()):
                return False
            if build and one.build:
                built.add(build)
                wheel = observed.horovod_builds.get(build)
                wheels.update([build] if wheel and wheel_of(asdict(wheel), one.build.version) else [])
    return built <= wheels


def _digest(text: str) -> str:
    """Return the digest that a node measures of a lock: see parse_lock of module_utils/packages/environments.py."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _content(target: str, name: str) -> str:
    """Return the digest in the name of the directory that an environment's link leads to; empty where role frameworks did not name it."""
    start = f".{name}-"
    return target.removeprefix(start) if target.startswith(start) and "/" not in target else ""
