# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Advice on a resolved stack: why it is so, and what to keep an eye on."""

from __future__ import annotations

from .component import Component
from .components import COMPONENTS, component
from .judge import session_for
from .model import AnyCandidate, Question, Solution
from .published import published_warnings
from .solution import inside, on_host
from .tables import Tables
from .unknowns import unknowns

Reason = dict[str, str]


def reasons(tables: Tables, question: Question, chosen: Solution) -> list[Reason]:
    """Return one sentence per component, in the order they are decided."""
    found: list[Reason] = []
    for slot, one in chosen.items():
        text = "" if one.absent else _reason(component(slot.component), tables, question, one)
        if text:
            found.append({"component": slot.component, "text": text})
    if not question.has_driver:
        found.insert(0, {"component": "driver", "text": "no driver: the host has no GPU and the request names none"})
    return found


def _reason(made: Component, tables: Tables, question: Question, one: AnyCandidate) -> str:
    if made.reason:
        return made.reason(tables, question, one)
    users = [user.name for user in COMPONENTS if made.name in user.uses]
    needing = [name for name in users if name in question.frameworks or name in question.constraints]
    return question.asked(made.name) or f"needed by {' and '.join(needing)}"


def warnings(tables: Tables, question: Question, chosen: Solution) -> list[str]:
    """Return the warnings about a solution."""
    found = [*_os_warnings(question), *_gpu_warnings(question), *published_warnings(tables, chosen)]
    for slot, one in chosen.items():
        beside = {**on_host(chosen), **(inside(chosen, slot.environment) if slot.environment else {})}
        found += [] if one.absent else component(slot.component).warnings(tables, question, one, beside)
    doubts = [text for _rule, text in session_for(tables).judge(question).doubts(chosen)]
    return found + [f"not verified: {text}" for text in dict.fromkeys([*unknowns(question, chosen), *doubts])]


def _os_warnings(question: Question) -> list[str]:
    row = question.system
    if row["status"] == "eol":
        advice = f"; {row['advice']}" if row.get("advice") else ""
        return [f"{row['id']} {row['version']} has reached its end of life{advice}"]
    return []


def _gpu_warnings(question: Question) -> list[str]:
    found = [
        f"'{gpu.model}' can be {' or '.join(gpu.row['ambiguous'])}; the strictest of them was assumed"
        for gpu in question.gpus
        if gpu.row.get("ambiguous")
    ]
    return found + [
        f"{gpu.model} has no row of its own in the tables; it was planned for as {gpu.row['architecture']} (chip "
        f"{gpu.row['chip']}, compute capability {gpu.row['compute_capability']})"
        for gpu in question.gpus
        if gpu.row.get("chip")
    ]
