# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A benchmark as benchmark.json holds it: documents of roles/benchmark/files/benchmark.py, one for each of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

MEASURED = "measured"
# Between these are all figures whose shares and sums are finite numbers.
LEAST, MOST = 1e-30, 1e30


@dataclass(frozen=True)
class Rank:
    """One process and its device. name: of the GPU, or of the processor."""

    rank: int = 0
    local_rank: int = 0
    node: str = ""
    device: str = ""  # cuda | cpu
    name: str = ""
    driver: str | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Measurement:
    """One figure, or the code of why there is none. rank: None where all ranks measured together."""

    name: str = ""
    case: dict[str, Any] = field(default_factory=dict)
    rank: int | None = None
    device: str = ""
    unit: str = ""
    higher_is_better: bool = True
    status: str = ""  # measured | not_measured
    median: float | None = None
    least: float | None = None
    most: float | None = None
    deviation: float | None = None
    repetitions: tuple[float, ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be compared: the program that measures runs as a user, on a node that others do not trust."""
        if not all(isinstance(value, (str, int, float, type(None))) for value in self.case.values()):
            raise ValueError("a case of words and numbers")
        figures = (self.median, self.least, self.most, self.deviation, self.repetitions, self.case, self.detail)
        if (self.median or 0) < 0 or not all(not one or LEAST <= abs(one) <= MOST for one in _numbers(figures)):
            raise ValueError("figures of a size that something has")

    @property
    def value(self) -> float | None:
        """Return the median where it was measured."""
        return self.median if self.status == MEASURED else None


@dataclass(frozen=True)
class Figure:
    """Samples of one quantity."""

    median: float = 0.0
    least: float = 0.0
    most: float = 0.0


@dataclass(frozen=True)
class Sample:
    """NVML's answers about a rank's GPU during a part; figures by quantity and unit, such as power_watts."""

    during: str = ""
    rank: int = 0
    status: str = ""
    code: str = ""
    reason: str = ""
    figures: dict[str, Figure] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """The measurements of one run of the program."""

    world_size: int = 1
    backend: str | None = None
    versions: dict[str, str | None] = field(default_factory=dict)
    ranks: tuple[Rank, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    samples: tuple[Sample, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a run without a rank, whose figures have no share of anything."""
        if not 1 <= self.world_size <= MOST:
            raise ValueError("a run of at least one rank")


@dataclass(frozen=True)
class Run:
    """One run: gpu (one rank on the first node), node (one node alone), or nodes (several together)."""

    name: str = ""
    nodes: tuple[str, ...] = ()
    status: str = ""  # succeeded | failed
    reason: str = ""
    document: Document | None = None


@dataclass(frozen=True)
class Reference:
    """A figure known before: images/s of one model trained in one way on a given number of GPUs. source: who measured it, and how."""

    model: str
    gpus: int
    images_per_second: float
    arm: str = "plain"
    source: str = ""


@dataclass(frozen=True)
class Benchmark:
    """All runs of one benchmark, and the figures to compare them with. Times are ISO 8601 text."""

    run_id: str = ""
    finished: str = ""
    runs: tuple[Run, ...] = ()
    reference: tuple[Reference, ...] = ()

    def known(self, found: Measurement, gpus: int) -> Reference | None:
        """Return the reference of a training on this number of GPUs; None without one, and for processors."""
        case = (found.case.get("model"), found.case.get("arm"), gpus)
        alike = (one for one in self.reference if (one.model, one.arm, one.gpus) == case)
        return next(alike, None) if found.device == "cuda" else None

    def documents(self, name: str) -> tuple[tuple[Run, Document], ...]:
        """Return the runs of this name that measured something, with their documents."""
        return tuple((run, run.document) for run in self.runs if run.name == name and run.document)


def _numbers(value: Any) -> Iterator[float]:
    """Yield the numbers in a value."""
    if isinstance(value, (Mapping, list, tuple)):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _numbers(one)
    elif isinstance(value, (int, float)):
        yield value
