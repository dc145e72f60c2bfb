# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other hardware or systems that would do, where nothing keeps what was asked for on this one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from .blame import Part, keep
from .judge import CERTAIN, Session
from .model import Gpu, Question
from .rows import DistroRow, GpuRow
from .search import solve
from .versions import version
from .wording import listed

MOST = 3


def other_hosts(session: Session, question: Question, parts: Sequence[Part]) -> list[str]:
    """Return the advice that would end a conflict besides the constraints, each found by planning for it."""
    left = keep(question, parts)
    names = {name for name, _value in parts}
    found: list[str] = []
    if question.owner and _works(session, replace(left, owner=None)):
        found.append("set gpu_stack_take_charge to true, so that a driver that fits is planned")
    for fact, ways in (("os", _systems), ("arch", _architectures), ("gpus", _gpus)):
        if fact in names:
            found += [*ways(session, question)] or [*ways(session, left)]  # what ends every conflict, or else this one
    return found


def _works(session: Session, question: Question) -> bool:
    """Return True if a question has a stack, and for certain: what was not verified is no way out."""
    return solve(session, question, doubts=CERTAIN) is not None


def _systems(session: Session, left: Question) -> Iterator[str]:
    """Yield the distributions that would do: releases of the same first, then the others."""
    rows = [row for row in session.tables.rows("distros") if row["status"] == "supported" and row != left.os]
    rows.sort(key=lambda row: (row["id"] != left.system["id"], -float(row["version"])))
    names = [_name(row) for row in rows if _works(session, replace(left, os=row, kernels=()))]
    if names:
        yield f"install {listed(names[:MOST], 'or')}"


def _name(row: DistroRow) -> str:
    return f"{row['id']} {row['version']}"


def _architectures(session: Session, left: Question) -> Iterator[str]:
    if left.arch == "aarch64" and _works(session, replace(left, arch="x86_64", wheels="x86_64")):
        yield "use an x86_64 host"


def _gpus(session: Session, left: Question) -> Iterator[str]:
    """Yield the advice that kinds of GPUs go into hosts of their own, or the nearest generation that would do."""
    alone = [gpu for gpu in left.gpus if _works(session, replace(left, gpus=(gpu,)))]
    if len(left.gpus) > 1:
        if len(alone) == len(left.gpus):
            yield "put these GPUs into different hosts"
        elif alone:
            yield f"take out {listed([gpu.model for gpu in left.gpus if gpu not in alone])}"
        return
    row = left.gpus[0].row
    if row.get("vgpu") and _works(session, _with(left, {**row, "model": f"all of {row['model']}", "vgpu": False})):
        yield "pass a whole GPU through"
        return
    have = version(row["compute_capability"])
    rows = sorted(session.tables.rows("gpus"), key=lambda row: version(row["compute_capability"]))
    newer = [row for row in rows if version(row["compute_capability"]) > have]
    older = [row for row in reversed(rows) if version(row["compute_capability"]) < have]
    fitting = [*_first(session, left, newer), *_first(session, left, older)]
    if fitting:
        yield f"use a GPU such as {listed([_described(row) for row in fitting], 'or')}"


def _first(session: Session, left: Question, rows: Iterable[GpuRow]) -> list[GpuRow]:
    """Return the first GPU that would do, judged by one of each generation."""
    generations = {row["compute_capability"]: row for row in rows}
    fitting = (row for row in generations.values() if _works(session, _with(left, row)))
    return [row for row in [next(fitting, None)] if row]


def _with(left: Question, row: GpuRow) -> Question:
    return replace(left, gpus=(Gpu(row, row["model"], 1),), forward_compat=bool(row["forward_compat"]))


def _described(row: GpuRow) -> str:
    return f"{row['model']} (compute capability {row['compute_capability']})"
