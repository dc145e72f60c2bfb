# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Triton, of which each release of PyTorch requires one."""

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
)
from ..facts import Machine, System
from ..keys import Key
from ..rule import Context, Rules
from ..tables import Subject
from ..wheels import glibc_reason
from .python import Python
from .pytorch.row import Torch


class TritonTable(TypedDict):
    sources: dict[str, str]


TRITON_ROWS = Subject("triton", ExtensionRow, TritonTable)
rule = Rules()


@rule("triton-python", "triton", "python", sources=("T2",))
def triton_python(context: Context, triton: Extension, python: Python) -> str | None:
    return python_reason("Triton", triton, python)


@rule("triton-glibc", "triton", "os", sources=("T2",))
def triton_glibc(context: Context, triton: Extension, os: System) -> str | None:
    return glibc_reason(f"Triton {triton.version}", triton.row.get("glibc"), os)


@rule("triton-arch", "triton", "arch", sources=("T2",))
def triton_arch(context: Context, triton: Extension, arch: Machine) -> str | None:
    return arch_reason("Triton", triton, arch)


@rule("triton-pytorch", "triton", "pytorch", sources=("T2",))
def triton_pytorch(context: Context, triton: Extension, torch: Torch) -> str | None:
    """PyTorch requires one release of Triton exactly."""
    if torch_reason("Triton", triton, torch) is None:
        return None
    return f"PyTorch {torch.version} requires another Triton than {triton.version}, which goes with PyTorch {triton.row['torch'].removeprefix('==')}"


TRITON = Component(
    name="triton",
    form=Extension,
    keys=(Key(name="triton", docs=("Triton, as PyTorch requires it, for GPUs.",), sample='"3.6"'),),
    place="framework",
    candidates=lambda tables, problem: releases("triton", tables.rows(TRITON_ROWS), problem),
    rules=rule,
    tables=(TRITON_ROWS,),
    beside=("pytorch",),
    system=("glibc",),
    requirements=lambda tables, problem, one: [f"triton=={one.version}"],
    module="triton",
    size={"cuda": 700, "cpu": 700},
    overview=Overview("Triton", COLUMNS, lambda tables: lines(tables, TRITON_ROWS)),
    mistake=lambda tables, problem: gpu_mistake("triton", problem),
)
