# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say what could not be asked of a Slurm cluster that others run, and why; what it answered is compared in subjects/slurm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..documents.parsing import parse
from ..documents.slurm import SlurmNode
from ..subjects.slurm.answer import wants_job
from ..subjects.slurm.request import EXTERNAL, state_of
from .check import Check, skipped

CATEGORY = "coherence"
NOT_FOUND = "no controller is known: neither slurm.conf nor the options of slurmd on this node name one"
NO_PROGRAM = "this node has no sinfo, or no slurm.conf for it, to ask the controller with"


def checks(variables: Mapping[str, Any], fact: Mapping[str, Any] | None) -> Iterator[Check]:
    """Yield the checks that are left out on a node; raise DocumentError for a fact gpu_slurm of another shape."""
    asked = parse(SlurmNode, fact or {}, "gpu_slurm").asked
    if state_of(variables) != EXTERNAL or asked is None:
        return
    if not asked.controller:
        left_out, reason = ("slurm_controller", "answers"), NOT_FOUND
    elif asked.reachable and asked.answers is None:
        left_out, reason = ("slurm_state", "available"), NO_PROGRAM
    else:
        return
    for name, expected in (left_out, *([("slurm_job", "runs")] if wants_job(variables) else [])):
        yield skipped(name, CATEGORY, expected, reason)
