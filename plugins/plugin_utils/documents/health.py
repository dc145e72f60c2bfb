# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The findings of module gpu_health as a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from .parsing import Words


@dataclass(frozen=True)
class Finding:
    """A failed or inconclusive check, or a note. gpu: None where it is not about one."""

    check: str = ""
    gpu: str | None = None
    expected: Words = Words("")
    measured: Words | None = None  # None where it is not known
    severity: str = ""  # failed | reboot_required | degraded | unknown | note
    cause: str = ""
    action: str = ""


@dataclass(frozen=True)
class RemappedRows:
    """Rows of a GPU's memory that were remapped; pending and failed: whether any are."""

    correctable: int | None = None
    uncorrectable: int | None = None
    pending: int | None = None
    failed: int | None = None


@dataclass(frozen=True)
class Counters:
    """A GPU's counters; None where it does not have the counter."""

    uncorrected_errors: int | None = None
    remapped_rows: RemappedRows | None = None
    retired_pages_pending: bool | None = None
    clock_reasons: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Judgement:
    """The verdict on a node's GPUs; counters by the GPU's name in the topology, None where it does not answer."""

    verdict: str = ""  # ok, or the worst severity of the findings
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()  # what is worth telling and no fault of the node
    counters: dict[str, Counters | None] = field(default_factory=dict)
