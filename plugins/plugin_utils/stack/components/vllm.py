# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vLLM, whose wheels are compiled for one build of one PyTorch."""

from __future__ import annotations

from typing import TypedDict

from ..component import Component, Overview
from ..extensions import (
    COLUMNS,
    Extension,
    ExtensionRow,
    arch_reason,
    gpu_mistake,
    lines,
    python_reason,
    releases,
    torch_reason,
    unknowns,
)
from ..facts import GpuModel, Machine, System
from ..keys import Key
from ..rule import Context, Rules
from ..tables import Subject
from ..versions import at_least
from ..wheels import glibc_reason
from .python import Python
from .pytorch.row import Torch


class VllmTable(TypedDict):
    sources: dict[str, str]
    min_cc: str


VLLM_ROWS = Subject("vllm", ExtensionRow, VllmTable)
rule = Rules()


@rule("vllm-python", "vllm", "python", sources=("V2",))
def vllm_python(context: Context, vllm: Extension, python: Python) -> str | None:
    return python_reason("vLLM", vllm, python)


@rule("vllm-glibc", "vllm", "os", sources=("V2",))
def vllm_glibc(context: Context, vllm: Extension, os: System) -> str | None:
    return glibc_reason(f"vLLM {vllm.version}", vllm.row.get("glibc"), os)


@rule("vllm-arch", "vllm", "arch", sources=("V2",))
def vllm_arch(context: Context, vllm: Extension, arch: Machine) -> str | None:
    return arch_reason("vLLM", vllm, arch)


@rule("vllm-pytorch", "vllm", "pytorch", sources=("V2",))
def vllm_pytorch(context: Context, vllm: Extension, torch: Torch) -> str | None:
    return torch_reason("vLLM", vllm, torch)


@rule("vllm-pytorch-build", "vllm", "pytorch", sources=("V3",))
def vllm_pytorch_build(context: Context, vllm: Extension, torch: Torch) -> str | None:
    """Refuse every build of PyTorch but that of the general package index, which vLLM's wheels are compiled for."""
    if torch.row.get("default"):
        return None
    return f"vLLM {vllm.version} is compiled for the PyTorch of the general package index, not for PyTorch {torch.version}+{torch.variant}"


@rule("vllm-gpu", "vllm", "gpus", sources=("V3",))
def vllm_gpu(context: Context, vllm: Extension, gpu: GpuModel) -> str | None:
    capability, first = gpu.row["compute_capability"], context.tables.beside(VLLM_ROWS)["min_cc"]
    if at_least(capability, first):
        return None
    return f"vLLM supports compute capability {first} and newer; {gpu.version} has {capability}"


VLLM = Component(
    name="vllm",
    form=Extension,
    keys=(Key(name="vllm", docs=("vLLM, for GPUs.",), sample="latest"),),
    place="framework",
    candidates=lambda tables, problem: releases("vllm", tables.rows(VLLM_ROWS), problem),
    rules=rule,
    tables=(VLLM_ROWS,),
    beside=("pytorch",),
    unknowns=lambda problem, one, beside: unknowns("vLLM", one),
    system=("glibc",),
    requirements=lambda tables, problem, one: [f"vllm=={one.version}"],
    module="vllm",
    size={"cuda": 4000, "cpu": 4000},
    overview=Overview("vLLM", COLUMNS, lambda tables: lines(tables, VLLM_ROWS)),
    mistake=lambda tables, problem: gpu_mistake("vllm", problem),
)
