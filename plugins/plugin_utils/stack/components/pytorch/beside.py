# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules and the component of a framework that stands on PyTorch, as far as they are the same for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...component import Component, Overview
from ...extensions import (
    COLUMNS,
    Extension,
    arch_reason,
    gpu_mistake,
    lines,
    python_reason,
    releases,
    torch_reason,
    wheels_mistake,
)
from ...facts import GpuModel, Machine, System
from ...input_error import InputError
from ...keys import Key
from ...model import Question
from ...rows import Accelerator
from ...rule import Context, Rules
from ...tables import Subject
from ...versions import at_least
from ...wheels import glibc_reason
from ..python import Python
from .row import Torch


class Made(NamedTuple):
    """A framework: its name, its title, its table, and the source of what its rules look at in the metadata."""

    name: str
    title: str
    rows: Subject[Any, Any]
    source: str

    @property
    def dashed(self) -> str:
        return self.name.replace("_", "-")


def python_rule(rule: Rules, made: Made) -> None:
    """Add the rule that a release is for a Python."""

    @rule(f"{made.dashed}-python", made.name, "python", sources=(made.source,))
    def for_python(context: Context, one: Extension, python: Python) -> str | None:
        return python_reason(made.title, one, python)


def pytorch_rule(rule: Rules, made: Made, *sources: str) -> None:
    """Add the rule that a release takes a PyTorch."""

    @rule(f"{made.dashed}-pytorch", made.name, "pytorch", sources=(made.source, *sources))
    def for_pytorch(context: Context, one: Extension, torch: Torch) -> str | None:
        return torch_reason(made.title, one, torch)


def wheel_rules(rule: Rules, made: Made) -> None:
    """Add the rules that compiled wheels are for a glibc and an architecture."""

    @rule(f"{made.dashed}-glibc", made.name, "os", sources=(made.source,))
    def for_glibc(context: Context, one: Extension, os: System) -> str | None:
        return glibc_reason(f"{made.title} {one.version}", one.row["glibc"], os) if "glibc" in one.row else None

    @rule(f"{made.dashed}-arch", made.name, "arch", sources=(made.source,))
    def for_arch(context: Context, one: Extension, arch: Machine) -> str | None:
        return arch_reason(made.title, one, arch)


def gpu_rule(rule: Rules, made: Made, source: str) -> None:
    """Add the rule that GPUs begin with the compute capability that the table names."""

    @rule(f"{made.dashed}-gpu", made.name, "gpus", sources=(source,))
    def for_gpu(context: Context, one: Extension, gpu: GpuModel) -> str | None:
        capability, first = gpu.row["compute_capability"], context.tables.beside(made.rows)["min_cc"]
        if at_least(capability, first):
            return None
        return (
            f"{made.title} {one.version} supports compute capability {first} and newer; {gpu.version} has {capability}"
        )


def on_pytorch(
    made: Made,
    rule: Rules,
    key: Key,
    size: Mapping[Accelerator, int],
    gpus: bool = False,
    site: bool = False,
    **more: Any,
) -> Component:
    """Return the component. gpus: whether it computes on GPUs only; site: whether the index has it as source only; more: what differs."""
    package = made.dashed

    def mistake(_tables: object, question: Question) -> InputError | None:
        wrong = gpu_mistake(made.name, question) if gpus else None
        return wrong or (wheels_mistake(made.name, question) if site else None)

    usual: dict[str, Any] = {
        "candidates": lambda tables, question: releases(made.name, tables.rows(made.rows), question),
        "requirements": lambda tables, question, one, beside: [f"{package}=={one.version}"],
        "module": made.name,
    }
    return Component(
        name=made.name,
        form=Extension,
        keys=(key,),
        place="framework",
        rules=rule,
        tables=(made.rows,),
        beside=("pytorch",),
        size=size,
        overview=Overview(made.title, COLUMNS, lambda tables: lines(tables, made.rows)),
        mistake=mistake,
        **{**usual, **more},
    )
