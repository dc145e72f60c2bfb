# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""FlashAttention 2, whose wheels a site compiles for its PyTorch."""

from __future__ import annotations

from typing import TypedDict

from ..component import Component, Overview
from ..extensions import (
    COLUMNS,
    Extension,
    ExtensionRow,
    gpu_mistake,
    lines,
    python_reason,
    releases,
    torch_reason,
    wheels_mistake,
)
from ..facts import GpuModel
from ..keys import Key
from ..rule import Context, Rules
from ..tables import Subject
from ..versions import at_least, minor
from .python import Python
from .pytorch.row import Torch


class FlashAttnTable(TypedDict):
    sources: dict[str, str]
    min_cc: str
    min_cuda: str


FLASH_ATTN_ROWS = Subject("flash_attn", ExtensionRow, FlashAttnTable)
rule = Rules()


@rule("flash-attn-python", "flash_attn", "python", sources=("F1",))
def flash_attn_python(context: Context, flash_attn: Extension, python: Python) -> str | None:
    return python_reason("FlashAttention", flash_attn, python)


@rule("flash-attn-pytorch", "flash_attn", "pytorch", sources=("F1", "F2"))
def flash_attn_pytorch(context: Context, flash_attn: Extension, torch: Torch) -> str | None:
    return torch_reason("FlashAttention", flash_attn, torch)


@rule("flash-attn-pytorch-cuda", "flash_attn", "pytorch", sources=("F2",))
def flash_attn_pytorch_cuda(context: Context, flash_attn: Extension, torch: Torch) -> str | None:
    first = context.tables.beside(FLASH_ATTN_ROWS)["min_cuda"]
    if torch.variant != "cpu" and at_least(minor(torch.row["cuda"]), first):
        return None
    return f"FlashAttention {flash_attn.version} is compiled with CUDA {first} or newer, not for PyTorch {torch.version}+{torch.variant}"


@rule("flash-attn-gpu", "flash_attn", "gpus", sources=("F2",))
def flash_attn_gpu(context: Context, flash_attn: Extension, gpu: GpuModel) -> str | None:
    capability, first = gpu.row["compute_capability"], context.tables.beside(FLASH_ATTN_ROWS)["min_cc"]
    if at_least(capability, first):
        return None
    return f"FlashAttention {flash_attn.version} supports compute capability {first} and newer; {gpu.version} has {capability}"


FLASH_ATTN = Component(
    name="flash_attn",
    form=Extension,
    keys=(
        Key(
            name="flash_attn",
            docs=(
                "FlashAttention 2, of which the site has a wheel for the planned PyTorch; the package index has its source only.",
            ),
            sample='"2.8.3"',
            comment="with wheels: site",
        ),
    ),
    place="framework",
    candidates=lambda tables, problem: releases("flash_attn", tables.rows(FLASH_ATTN_ROWS), problem),
    rules=rule,
    tables=(FLASH_ATTN_ROWS,),
    beside=("pytorch",),
    requirements=lambda tables, problem, one: [f"flash-attn=={one.version}"],
    module="flash_attn",
    size={"cuda": 1000, "cpu": 1000},
    overview=Overview("FlashAttention", COLUMNS, lambda tables: lines(tables, FLASH_ATTN_ROWS)),
    mistake=lambda tables, problem: gpu_mistake("flash_attn", problem) or wheels_mistake("flash_attn", problem),
)
