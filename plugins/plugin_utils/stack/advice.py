# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user should know about a resolved stack: why it is so, and what to keep an eye on."""

from __future__ import annotations

from .component import Component
from .components import COMPONENTS, component
from .model import AnyCandidate, Problem, Solution
from .published import published_warnings
from .tables import Tables
from .unknowns import unknowns

Reason = dict[str, str]


def reasons(tables: Tables, problem: Problem, chosen: Solution) -> list[Reason]:
    """Return one sentence per component, in the order they are decided."""
    found: list[Reason] = []
    for slot, one in chosen.items():
        text = "" if one.absent else _reason(component(slot.component), tables, problem, one)
        if text:
            found.append({"component": slot.component, "text": text})
    if not problem.has_driver:
        found.insert(0, {"component": "driver", "text": "no driver: the host has no GPU and the request names none"})
    return found


def _reason(made: Component, tables: Tables, problem: Problem, one: AnyCandidate) -> str:
    if made.reason:
        return made.reason(tables, problem, one)
    users = [user.name for user in COMPONENTS if made.name in user.uses]
    needing = [name for name in users if name in problem.frameworks or name in problem.wishes]
    return problem.asked(made.name) or f"needed by {' and '.join(needing)}"


def warnings(tables: Tables, problem: Problem, chosen: Solution) -> list[str]:
    """Return what to keep an eye on."""
    found = [*_os_warnings(problem), *_gpu_warnings(problem), *published_warnings(tables, chosen)]
    for slot, one in chosen.items():
        found += [] if one.absent else component(slot.component).warnings(tables, problem, one)
    return found + unknowns(problem, chosen)


def _os_warnings(problem: Problem) -> list[str]:
    row = problem.system
    if row["status"] == "eol":
        advice = f"; {row['advice']}" if row.get("advice") else ""
        return [f"{row['id']} {row['version']} has reached its end of life{advice}"]
    return []


def _gpu_warnings(problem: Problem) -> list[str]:
    found = [
        f"'{gpu.model}' can be {' or '.join(gpu.row['ambiguous'])}; the strictest of them was assumed"
        for gpu in problem.gpus
        if gpu.row.get("ambiguous")
    ]
    return found + [
        f"{gpu.model} has no row of its own in the tables; it was planned for as {gpu.row['architecture']} (chip "
        f"{gpu.row['chip']}, compute capability {gpu.row['compute_capability']})"
        for gpu in problem.gpus
        if gpu.row.get("chip")
    ]
