# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DeepSpeed, whose operators are compiled on the host when they are first used."""

from __future__ import annotations

from typing import TypedDict

from ..component import Component, Overview
from ..extensions import COLUMNS, Extension, ExtensionRow, lines, python_reason, releases, torch_reason, wheels_mistake
from ..keys import Key
from ..model import Problem
from ..rule import Context, Rules
from ..tables import Subject, Tables
from ..versions import major, minor
from .cuda import Toolkit
from .python import Python
from .pytorch.row import Torch


class DeepspeedTable(TypedDict):
    """any_minor: CUDA majors of which a toolkit compiles for a PyTorch of any minor."""

    sources: dict[str, str]
    any_minor: list[str]


DEEPSPEED_ROWS = Subject("deepspeed", ExtensionRow, DeepspeedTable)
rule = Rules()


@rule("deepspeed-python", "deepspeed", "python", sources=("Q1",))
def deepspeed_python(context: Context, deepspeed: Extension, python: Python) -> str | None:
    return python_reason("DeepSpeed", deepspeed, python)


@rule("deepspeed-pytorch", "deepspeed", "pytorch", sources=("Q1",))
def deepspeed_pytorch(context: Context, deepspeed: Extension, torch: Torch) -> str | None:
    return torch_reason("DeepSpeed", deepspeed, torch)


@rule("deepspeed-cuda", "cuda", "pytorch", sources=("Q2",), needs="deepspeed")
def deepspeed_cuda(context: Context, cuda: Toolkit, torch: Torch) -> str | None:
    """A toolkit that is there compiles its operators, and has to go with PyTorch's CUDA."""
    if cuda.absent or torch.variant == "cpu":
        return None
    ours, theirs = minor(cuda.version), minor(torch.row["cuda"])
    free = context.tables.beside(DEEPSPEED_ROWS)["any_minor"]
    if ours == theirs or (major(ours) == major(theirs) and major(ours) in free):
        return None
    return f"DeepSpeed does not compile with CUDA {ours} for PyTorch {torch.version}+{torch.variant}, which runs on {theirs}"


def _warnings(tables: Tables, problem: Problem, one: Extension) -> list[str]:
    if "cuda" in problem.wishes or problem.accelerator == "cpu":
        return []
    return [
        f"DeepSpeed {one.version} compiles its operators when they are first used, for which the host has no CUDA toolkit: ask for "
        "cuda as well, or use what needs none"
    ]


DEEPSPEED = Component(
    name="deepspeed",
    form=Extension,
    keys=(
        Key(
            name="deepspeed",
            docs=("DeepSpeed, of which the site has a wheel; the package index has its source only.",),
            sample='"0.19"',
            comment="with wheels: site",
        ),
    ),
    place="framework",
    candidates=lambda tables, problem: releases("deepspeed", tables.rows(DEEPSPEED_ROWS), problem),
    rules=rule,
    tables=(DEEPSPEED_ROWS,),
    beside=("pytorch",),
    warnings=_warnings,
    requirements=lambda tables, problem, one: [f"deepspeed=={one.version}"],
    module="deepspeed",
    size={"cuda": 100, "cpu": 100},
    overview=Overview("DeepSpeed", COLUMNS, lambda tables: lines(tables, DEEPSPEED_ROWS)),
    mistake=lambda tables, problem: wheels_mistake("deepspeed", problem),
)
