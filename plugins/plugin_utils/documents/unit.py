# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What module training_unit answers about a node's part of a run, as far as the controller reads it.

Much of it was written by the training user's own programs. What is not there, no rank or program has written yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import values
from .values import Unfit

# More ranks than any run has.
MOST_RANKS = 2**20
# Of all logs of a node together, as base64 of what is compressed.
LONGEST_LOGS = 2**28


@dataclass(frozen=True)
class Service:
    """The systemd unit."""

    state: str


@dataclass(frozen=True)
class Rank:
    """A rank that has started."""

    rank: int
    world_size: int = 0
    local_rank: int | None = None
    attempt: int | None = None
    started: float = 0.0
    last_output: float | None = None
    last_line: str = ""


@dataclass(frozen=True)
class RankFailure:
    """The end of a rank as the engine reported it."""

    rank: int
    exit_code: int
    time: float
    message: str = ""


@dataclass(frozen=True)
class Agent:
    """What the program that starts the ranks wrote at its end."""

    failures: tuple[RankFailure, ...] = ()
    error: str | None = None
    finished: float | None = None


@dataclass(frozen=True)
class Collective:
    """One that a rank's flight recorder remembers."""

    sequence: int
    operation: str
    sizes: tuple[tuple[int, ...], ...]
    state: str
    place: str | None
    created: float


@dataclass(frozen=True)
class Group:
    """A process group in a rank's dump."""

    description: str
    ranks: tuple[int, ...] | None
    enqueued: int
    completed: int
    collectives: tuple[Collective, ...]


@dataclass(frozen=True)
class UnitAnswer:
    """All of it but logs and metrics, which are the user's and may hold anything."""

    service: Service | None = None
    end: str = ""
    ranks: tuple[Rank, ...] = ()
    agent: Agent | None = None
    rendezvous_error: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    now: float = 0.0
    tails: dict[str, tuple[str, ...]] = field(default_factory=dict)
    metrics_error: str | None = None
    flight: dict[str, dict[str, Group]] = field(default_factory=dict)
    disk_full: bool = False
    warnings: tuple[str, ...] = ()


def judge_answer(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer of the module; raise Unfit for what it never answers."""
    answer = {key: value for key, value in given.items() if key in UnitAnswer.__dataclass_fields__}
    values.document(UnitAnswer)(answer)
    numbers = [one[key] for one in answer.get("ranks") or () for key in ("rank", "world_size") if key in one]
    numbers += [one["rank"] for one in (answer.get("agent") or {}).get("failures") or ()]
    for number in numbers:
        values.number(number, 0, MOST_RANKS)
    if not all(rank.isdecimal() and rank.isascii() and len(rank) < 8 for rank in answer.get("flight") or {}):
        raise Unfit("flight recorders by the numbers of ranks")
    metrics, logs = given.get("metrics"), given.get("logs")
    if metrics is not None:
        answer["metrics"] = values.plain(values.mapping(lambda one: one)(metrics), finite=False)
    if logs is not None:
        if not isinstance(logs, str) or len(logs) > LONGEST_LOGS:
            raise Unfit(f"logs of at most {LONGEST_LOGS} characters")
        answer["logs"] = logs
    return answer
