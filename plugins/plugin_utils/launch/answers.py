# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The door for what module training_unit answers: a node that an attacker took over may answer anything. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..documents.parsing import DocumentError, parse
from ..problems.phrases import clean

DEEPEST = 40  # levels of lists and dictionaries; the module itself refuses metrics of more than 32
LATEST, MOST = 10.0**12, 10**6  # seconds since the epoch; ranks, and their number
LONGEST = 1 << 63  # whole numbers
LARGEST_JOB = 1 << 32  # its number in Slurm
LINES, WIDTH, TEXT = 1000, 2000, 1 << 16  # of a log that is shown; characters of any other text
_PACKED = "logs"  # which is base64


@dataclass(frozen=True)
class _Service:
    state: str


@dataclass(frozen=True)
class _Rank:
    rank: int
    world_size: int
    started: float = 0.0
    last_output: float | None = None
    last_line: str = ""
    stack: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Failure:
    rank: int
    exit_code: int
    time: float
    message: str = ""


@dataclass(frozen=True)
class _Agent:
    failures: tuple[_Failure, ...] = ()
    error: str | None = None
    finished: float | None = None
    engine: str = ""  # which the error is of, where it is not that which the unit runs


@dataclass(frozen=True)
class _Collective:
    sequence: int
    operation: str
    state: str
    created: int
    sizes: Any = None
    place: str = ""


@dataclass(frozen=True)
class _Group:
    description: str
    enqueued: int
    completed: int
    ranks: tuple[int, ...] | None = None
    collectives: tuple[_Collective, ...] = ()


@dataclass(frozen=True)
class _Job:
    """A job of Slurm's, as launch/node/slurm.py notes it; code: why there is none."""

    id: int | None = None
    state: str = ""
    reason: str = ""
    restarts: int = 0
    limit: str = ""
    expired: bool = False
    code: str = ""
    node: str = ""


@dataclass(frozen=True)
class _Standing:
    """The known state of a run on a node, while it runs and at its end."""

    service: _Service
    now: float
    ranks: tuple[_Rank, ...] = ()
    agent: _Agent | None = None
    metrics_written: float | None = None
    job: _Job | None = None
    end: str = "ended"
    rendezvous_error: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    tails: dict[str, tuple[str, ...]] = field(default_factory=dict)
    metrics: dict[str, Any] | None = None
    metrics_error: str | None = None
    disk_full: bool = False
    mount_faults: tuple[str, ...] = ()
    exceptions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    flight: dict[str, dict[str, _Group]] = field(default_factory=dict)
    flight_errors: dict[str, str] = field(default_factory=dict)
    logs: str | None = None


def read_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer about a run, with texts that a terminal may show and numbers as they can be; raise DocumentError for another."""
    texts = harmless({key: value for key, value in answer.items() if key != _PACKED})
    standing = parse(_Standing, {**texts, _PACKED: answer.get(_PACKED)})
    for rank in standing.ranks:
        _limit("ranks.rank", rank.rank, MOST)
        _limit("ranks.world_size", rank.world_size, MOST)
    agent = standing.agent or _Agent()
    times = [
        standing.now,
        *(one.started for one in standing.ranks),
        *(one.time for one in agent.failures),
        agent.finished,
    ]
    for time in [*times, *(one.last_output for one in standing.ranks)]:
        _limit("a time", time or 0.0, LATEST)
    job = standing.job or _Job()
    _limit("job.id", job.id or 0, LARGEST_JOB)
    _limit("job.restarts", job.restarts, MOST)
    for name in [*standing.exceptions, *standing.flight, *standing.flight_errors]:
        _limit("a rank", int(name) if name.isdecimal() and len(name) < 9 else MOST + 1, MOST)
    found = harmless({key: value for key, value in asdict(standing).items() if key != _PACKED})
    found["tails"] = {name: [line[-WIDTH:] for line in lines[-LINES:]] for name, lines in found["tails"].items()}
    found["mount_faults"] = found["mount_faults"][:LINES]
    return {**found, _PACKED: standing.logs}


def _limit(path: str, value: float, most: float) -> None:
    if not 0 <= value <= most:
        raise DocumentError(path, value, f"a number from 0 to {most:g}")


def harmless(value: Any, depth: int = 0) -> Any:
    """Return plain values with all texts as a terminal may show them; raise DocumentError for lists in lists in lists without an end."""
    if depth > DEEPEST:
        raise DocumentError("", "…", f"of at most {DEEPEST} levels")
    if isinstance(value, Mapping):
        return {clean(str(key)): harmless(one, depth + 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [harmless(one, depth + 1) for one in value]
    if isinstance(value, str):
        return clean(value)[:TEXT]
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return (float("inf") if value > 0 else float("-inf")) if is_whole and abs(value) >= LONGEST else value
