# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training run as its result.json holds it (written by launch/outcome.py)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LARGEST = 1e100  # of a loss that can be drawn


@dataclass(frozen=True)
class TrainingFailure:
    """The failure that ended the run. ``rank`` and ``exit_code`` are None where no rank failed; ``code`` is of launch/memory.py."""

    node: str = ""
    rank: int | None = None
    exit_code: int | None = None
    reason: str = ""
    code: str = ""
    tail: tuple[str, ...] = ()  # the last lines of its output


@dataclass(frozen=True)
class LostNode:
    """A node that was lost by a run which succeeded without it."""

    node: str = ""
    reason: str = ""


@dataclass(frozen=True)
class StalledRank:
    """A rank because of which a collective stalled; node is None where the rank never started."""

    rank: int = 0
    node: str | None = None


@dataclass(frozen=True)
class Stall:
    """The collective that ranks waited in (launch/stall.py)."""

    code: str = ""
    ranks: tuple[StalledRank, ...] = ()
    operation: str = ""
    sequence: int = 0
    group: str = ""
    place: str = ""
    waiting: int = 0


@dataclass(frozen=True)
class ScheduledJob:
    """The job of Slurm's that the run was (launch/queue.py)."""

    id: int = 0
    restarts: int = 0


@dataclass(frozen=True)
class Metrics:
    """The metrics that most scripts have; None and "" where this one wrote none. A number may be infinite, or none."""

    samples_per_second: float | None = None
    loss_first: float | None = None
    loss_last: float | None = None
    epochs: float | None = None
    losses: tuple[float, ...] = ()  # at equal distances over the run; empty where one cannot be drawn
    device: str = ""
    backend: str = ""

    @classmethod
    def read(cls, values: Mapping[str, Any] | None) -> Metrics:
        """Return the values of a script's metrics that can be understood: a user's own program may write anything."""
        given = values or {}
        return cls(
            samples_per_second=_number(given.get("samples_per_second")),
            loss_first=_number(given.get("loss_first")),
            loss_last=_number(given.get("loss_last")),
            epochs=_number(given.get("epochs")),
            losses=_numbers(given.get("losses")),
            device=_text(given.get("device")),
            backend=_text(given.get("backend")),
        )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except OverflowError:
        return -math.inf if isinstance(value, int) and value < 0 else math.inf
    except ValueError:
        return None


def _numbers(value: object) -> tuple[float, ...]:
    found = [_number(one) for one in value] if isinstance(value, list) else []
    known = tuple(one for one in found if one is not None and abs(one) < LARGEST)
    return known if len(known) == len(found) else ()


def _text(value: object) -> str:
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


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
    lost: tuple[LostNode, ...] = ()
    stall: Stall | None = None
    job: ScheduledJob | None = None
