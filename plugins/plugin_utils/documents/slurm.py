# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts from which Slurm's configuration of a node follows: fact gpu_slurm (module slurm_facts) as a value."""

from __future__ import annotations

from dataclasses import dataclass, field

from .values import MOST_CPUS, is_cpu_list

MOST_MEMORY = 2**40  # KiB


@dataclass(frozen=True)
class Place:
    """Processors of a package and NUMA node. threads: of each core, None where they differ; cpus: as 0-31,64-95."""

    package: int = 0
    node: int | None = None
    cores: int = 0
    threads: int | None = None
    cpus: str = ""

    def __post_init__(self) -> None:
        """Refuse what no machine has: slurm.conf with such a node is no use for any other."""
        if not 0 <= self.cores <= MOST_CPUS or not 0 <= (self.threads or 0) <= MOST_CPUS or not is_cpu_list(self.cpus):
            raise ValueError("cores, threads and a list of CPUs such as 0-31,64-95")


@dataclass(frozen=True)
class Job:
    """The GPUs as one job with all of the node's saw them; None where it did not run, and why."""

    seen: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Asked:
    """The controller's answer about a node. reachable: its port; answers: whether it takes the node for one of its cluster, None where the
    node cannot ask.
    """

    controller: str = ""
    reachable: bool = False
    accounting: bool = False
    answers: bool | None = False
    state: str = ""
    reason: str = ""
    job: Job | None = None


@dataclass(frozen=True)
class SlurmNode:
    """The whole fact. capabilities: numbers of the device files of MIG instances; lines: of our files about this node.

    included: our files that the cluster's configuration includes, with the places of those lines; named: its keys that name our programs.
    foreign: slurm.conf is not ours; installed: packages that the role installed; programs: digest of those of Slurm's health checks;
    confines: cgroups have what Slurm needs.
    """

    recorded: bool = False
    name: str = ""
    version: str | None = None
    places: tuple[Place, ...] = ()
    memory_kib: int | None = None
    capabilities: dict[str, int] = field(default_factory=dict)
    configured: bool = False
    included: dict[str, tuple[str, ...]] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    lines: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    foreign: bool = False
    installed: tuple[str, ...] = ()
    programs: str | None = None
    confines: bool = False
    asked: Asked | None = None

    def __post_init__(self) -> None:
        """Refuse what no machine has: Slurm divides the memory."""
        if not 0 <= (self.memory_kib or 0) <= MOST_MEMORY or any(number < 0 for number in self.capabilities.values()):
            raise ValueError("a node with KiB of memory and numbers of device files")
