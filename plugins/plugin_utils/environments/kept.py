# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The locks that the controller keeps, one file for each request. They decide, whatever the nodes have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..problems.problem import Problem, ProblemError
from ..problems.text import describe
from .locks import assign, request_of

__all__ = ["CONDA", "WHEELS", "choose", "new_locks", "read_locks"]

# How the files end: locks of wheels, and of what conda brings.
WHEELS, CONDA = ".txt", ".conda.txt"
Plan = Mapping[str, Mapping[str, str]]


def read_locks(directory: str, ending: str = WHEELS) -> dict[str, str]:
    """Return {digest of the request: text} of the locks in a directory; an empty name means no directory."""
    paths = sorted(Path(directory).expanduser().glob(f"*{ending}")) if directory else []
    return {
        path.name.removesuffix(ending): path.read_text(encoding="utf-8", errors="replace")
        for path in paths
        if re.fullmatch(r"[0-9a-f]{16}", path.name.removesuffix(ending))
    }


def choose(
    hosts: Mapping[str, Mapping[str, Mapping[str, Any]]],
    directory: str,
    judge: Callable[[str, Mapping[str, Any]], Problem | None],
    ending: str = WHEELS,
) -> dict[str, dict[str, str]]:
    """Return the lock of each request as locks.assign does. ProblemError where the controller keeps one that cannot be meant.

    judge: returns why a text is not a lock of a described environment
    """
    kept = read_locks(directory, ending)
    problems: dict[str, Problem] = {}
    for one in (one for described in hosts.values() for one in described.values()):
        text = kept.get(one["digest"])
        found = _problem(text, one) or judge(text, one) if text is not None and not one["relock"] else None
        if found:
            path = f"{directory}/{one['digest']}{ending}"
            problems[path] = Problem("lock_kept", path, {"reason": describe(found)})
    if problems:
        raise ProblemError(*problems.values())
    return assign(hosts, kept)


def _problem(text: str, environment: Mapping[str, Any]) -> Problem | None:
    """Return the problem of a text that does not say that it is a lock of this request: no node would count it as one."""
    names = request_of(text)
    if names == environment["digest"]:
        return None
    return Problem("lock_request", names or "none", {"expected": environment["digest"]})


def new_locks(plan: Plan, directory: str, ending: str = WHEELS) -> list[dict[str, str]]:
    """Return [{path, content}] of the chosen locks that the controller does not keep yet; plan: see locks.assign."""
    kept = read_locks(directory, ending)
    return [
        {"path": str(Path(directory).expanduser().absolute() / f"{digest}{ending}"), "content": one["lock"]}
        for digest, one in plan.items()
        if directory and one["lock"] and kept.get(digest) != one["lock"]
    ]
