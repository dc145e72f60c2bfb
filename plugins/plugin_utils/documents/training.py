# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training run as its result.json holds it (written by launch/outcome.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TrainingFailure:
    """The failure that ended the run. ``rank`` and ``exit_code`` are None where no rank failed."""

    node: str = ""
    rank: int | None = None
    exit_code: int | None = None
    reason: str = ""
    tail: tuple[str, ...] = ()  # the last lines of its output


@dataclass(frozen=True)
class TrainingResult:
    """One run. Times are ISO 8601 text; ``metrics`` is the user's: any names, any values."""

    run_id: str = ""
    script: str = ""
    nodes: tuple[str, ...] = ()
    world_size: int | None = None  # None where no rank ever started
    started: str = ""
    finished: str = ""
    status: str = ""  # succeeded | failed
    failure: TrainingFailure | None = None
    metrics: dict[str, Any] | None = None
