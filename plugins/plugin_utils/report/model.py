# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as one typed value: everything HTML, JSON and JUnit XML show, and nothing about how they look."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..documents.check import Check
from .benchmark import Benchmark
from .health import Health
from .machine import Machine
from .network import Network

FORMAT = 1


@dataclass(frozen=True)
class Item:
    """One thing the stack asks for next to what the node has."""

    component: str  # driver, environment main, ...
    name: str
    planned: str
    installed: str  # empty where nothing was found or measured
    result: str  # as planned | differs | missing | unwanted | not measured


@dataclass(frozen=True)
class Stack:
    """The decided stack in words."""

    summary: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]  # (component, reason)
    warnings: tuple[str, ...]
    table_version: str


@dataclass(frozen=True)
class Description:
    """The description of a node. Nodes with equal descriptions are shown once."""

    remark: str  # the user's own words about the node
    distribution: str
    kernel: str
    architecture: str
    processors: int | None
    memory_gib: float | None
    gpus: tuple[str, ...]
    driver: str
    container: bool
    reboot_pending: str
    gpu_health: str  # the verdict of module gpu_health; empty where it did not run
    problems: tuple[str, ...]
    stack: Stack
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Node:
    """One node."""

    name: str
    address: str
    description: Description
    checks: tuple[Check, ...]
    machine: Machine | None  # None where no GPU was measured
    health: Health
    gpu_compute: bool = True  # False where its user said that its GPUs compute nothing


@dataclass(frozen=True)
class Failure:
    """The cause of a training run's early end."""

    node: str
    rank: int | None
    exit_code: int | None
    reason: str
    tail: tuple[str, ...]

    @property
    def words(self) -> str:
        """The cause; where none was given, what is known of the rank."""
        if self.reason:
            return self.reason
        rank = "a rank" if self.rank is None else f"rank {self.rank}"
        return rank + (" failed" if self.exit_code is None else f" ended with exit code {self.exit_code}")


@dataclass(frozen=True)
class Run:
    """One training run."""

    run_id: str
    script: str
    nodes: tuple[str, ...]
    processes: int
    started: str
    finished: str
    seconds: float | None
    status: str  # succeeded | failed
    failure: Failure | None
    samples_per_second: float | None
    loss_first: float | None
    loss_last: float | None
    epochs: int | None
    device: str
    backend: str
    remarks: tuple[str, ...]
    counts: bool  # the newest run of its script on this number of nodes: older ones are history
    losses: tuple[float, ...] = ()  # at equal distances over the run


@dataclass(frozen=True)
class Size:
    """Throughput of one size of cluster, compared with the smallest one."""

    run_id: str
    nodes: int
    processes: int
    samples_per_second: float
    speedup: float
    efficiency: float  # speedup divided by the growth in processes


@dataclass(frozen=True)
class Scaling:
    """Throughput of one script over cluster sizes, smallest first."""

    script: str
    sizes: tuple[Size, ...]
    caveat: str = ""  # what these figures do not say, where the hardware was not what it stands for


@dataclass(frozen=True)
class Moment:
    """The values of all GPUs in a span of a run; at: percent of the run's time."""

    at: float
    least: float
    median: float
    most: float


@dataclass(frozen=True)
class Course:
    """One quantity over the time of a run, of all GPUs."""

    name: str
    title: str
    unit: str
    least: float
    median: float
    most: float
    moments: tuple[Moment, ...]


@dataclass(frozen=True)
class Courses:
    """The work of the GPUs during a run; idle: a sentence for each GPU that was used far less than its like."""

    run_id: str
    script: str
    nodes: tuple[str, ...]
    gpus: int
    seconds: float
    courses: tuple[Course, ...]
    idle: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """The result, in one word and a few sentences."""

    status: str  # passed | failed | incomplete
    checks: dict[str, int]
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """The whole report."""

    title: str
    finished: str  # when verification ended; the newest run's end where that is later
    verdict: Verdict
    nodes: tuple[Node, ...]
    cluster_checks: tuple[Check, ...]
    network: Network
    runs: tuple[Run, ...]  # newest first
    scaling: tuple[Scaling, ...]
    benchmark: Benchmark | None = None  # the newest; None where there was none
    courses: Courses | None = None  # of the newest run whose GPUs were watched
    inventory: str = ""  # the name of its file
    collection: str = ""  # the version that verified
    format: int = field(default=FORMAT)

    @property
    def checks(self) -> tuple[Check, ...]:
        """Every check, of nodes and of the cluster."""
        return tuple(check for node in self.nodes for check in node.checks) + self.cluster_checks
