# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find unusable nodes in the results of the first contact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..problems.problem import Problem

# Characters of a node's message.
LONGEST = 500
# What role stack registered at the first contact.
READS = (
    *(f"__stack_reached.{name}" for name in ("failed", "msg", "unreachable")),
    *(f"__stack_root.{name}" for name in ("rc", "unreachable")),
)


def contact_problems(
    gathered: Mapping[str, Mapping[str, Any]],
    root: Mapping[str, Mapping[str, Any]],
    limit: str = "",
    needs_all: bool = True,
) -> list[Problem]:
    """Find why hosts are lost: unreachable, not allowed to become root, or anything else about their facts.

    The last problem, where other hosts answer, is the limit that leaves out all that are lost.

    gathered: what gathering facts registered, by host; root: what an attempt to become root did where that failed; limit: that of this
    run, within which the others are; needs_all: False where the play goes on with those that answer, if there are any
    """
    unreachable = [host for host in gathered if _is_lost(gathered[host]) or _is_lost(root[host])]
    failed = [host for host in gathered if gathered[host].get("failed") and host not in unreachable]
    barred = [host for host in failed if root[host].get("rc") != 0]
    others = [
        Problem("no_facts", host, {"error": str(gathered[host].get("msg"))[:LONGEST]})
        for host in failed
        if host not in barred
    ]
    lost = sorted({*unreachable, *failed})
    answering = len(gathered) - len(lost)
    if answering and not needs_all:
        return []
    # Ansible takes colons for a part of the names where there is a comma.
    rest = ("," if "," in limit else ":").join([*([limit] if limit else []), *(f"!{host}" for host in lost)])
    return [
        *([_lost("unreachable", unreachable, len(gathered))] if unreachable else []),
        *([_lost("not_root", barred, len(gathered))] if barred else []),
        *others,
        *([Problem("some_lost", "gpu_nodes", {"count": answering, "limit": rest})] if lost and answering else []),
    ]


def _lost(code: str, hosts: list[str], total: int) -> Problem:
    return Problem(code, "gpu_nodes", {"count": len(hosts), "total": total, "lost": sorted(hosts)})


def _is_lost(result: Mapping[str, Any]) -> bool:
    return bool(result.get("unreachable"))
