# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs that are going to be partitioned (MIG): which can be, and into which instances."""

from __future__ import annotations

import re
from typing import TypedDict

from ...facts import GpuModel
from ...input_error import InputError
from ...keys import Key
from ...model import Question
from ...rows import GpuRow
from ...rule import Doubt
from ...tables import Nothing, Subject, Tables
from ...versions import at_least

ENABLED = "enabled"
PROFILE = re.compile(r"\d+g\.\d+gb(?:[+-][a-z.]+)?")
# No GPU of an older generation has it.
FIRST = "8.0"


class MigRow(TypedDict):
    """profiles: None where they are not known."""

    models: list[str]
    profiles: list[str] | None
    sources: list[str]


MIG = Subject("mig", MigRow, Nothing)
KEY = Key(
    name="mig",
    docs=(
        "How the GPUs will be partitioned, V(enabled) or the profile of their instances such as V(1g.10gb).",
        "Role allreduce.gpu.gpu_settings switches the mode with C(mig_mode); no role creates the instances.",
    ),
    sample="1g.10gb",
    comment="GPUs must support it; role gpu_settings switches the mode, no role creates the instances",
    free=True,
    order=None,
    declares=True,
)


def mig_mistake(question: Question) -> InputError | None:
    """Return the mistake that the constraint is not a profile, or that the host has nothing to partition."""
    constraint = question.constraints.get(KEY.name)
    if constraint and constraint != ENABLED and not PROFILE.fullmatch(constraint):
        return InputError("wrong_mig", constraint)
    return InputError("key_without_gpu", KEY.name) if constraint and question.accelerator == "cpu" else None


def mig_reason(tables: Tables, gpu: GpuModel, constraint: str) -> str | None:
    """Return the reason why a GPU cannot be partitioned, or not so; a name of several models cannot what one of them cannot."""
    if gpu.row.get("vgpu"):
        return f"{gpu.version} is a part of a GPU, which the hypervisor partitions"
    found = [_row(tables, model) for model in _models(gpu.row)]
    known = [row["profiles"] for row in found if row and row["profiles"] is not None]
    if None in found and not _may(gpu.row):
        return f"{gpu.version} cannot be partitioned"
    if constraint == ENABLED or all(constraint in profiles for profiles in known):
        if None in found:
            return Doubt(f"whether {gpu.version} can be partitioned")
        seen = constraint == ENABLED or len(known) == len(found)
        return None if seen else Doubt(f"whether {gpu.version} has instances of {constraint}")
    return f"{gpu.version} has no instances of {constraint}, but of {', '.join(known[0])}"


def mig_warnings(question: Question) -> list[str]:
    """Return the warnings about communication between instances."""
    if KEY.name not in question.constraints:
        return []
    return [
        "instances of partitioned GPUs (MIG) reach each other neither over NVLink and NVSwitch nor by CUDA IPC: training on several goes "
        "through the host's memory; role gpu_settings switches the mode (mig_mode), but no role creates the instances",
    ]


def _models(row: GpuRow) -> list[str]:
    return row.get("ambiguous") or [row["model"]]


def _row(tables: Tables, model: str) -> MigRow | None:
    return next((row for row in tables.rows(MIG) if model in row["models"]), None)


def _may(row: GpuRow) -> bool:
    """Return True if a GPU that only the PCI ID database knows is of a generation that may be partitioned."""
    return "chip" in row and at_least(row["compute_capability"], FIRST)
