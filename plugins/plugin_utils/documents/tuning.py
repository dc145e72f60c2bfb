# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tuning of a node: fact gpu_tuning (module tuning_facts) as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Switch:
    """A value of the kernel: now, and before the first change; None where the kernel does not have it."""

    running: str | None = None
    original: str | None = None


@dataclass(frozen=True)
class Line:
    """A line of a file of sysctl.d or logind.conf.d that sets a key; lines are in the order in which they are read."""

    file: str
    line: int
    key: str
    value: str


@dataclass(frozen=True)
class Logind:
    """Removal of a user's shared memory at logout by systemd-logind: yes, no, or None where it does not run.

    ours: our drop-in is there; overriding: the line of another one that is read after it.
    """

    running: str | None = None
    ours: bool = False
    overriding: Line | None = None


@dataclass(frozen=True)
class Tuned:
    """The daemon tuned. verified is None where it was not asked."""

    in_charge: bool = False
    profile: str = ""
    mode: str = ""
    directory: str = ""
    bases: tuple[str, ...] = ()  # of its own profiles, those that ours may begin with
    verified: bool | None = None


@dataclass(frozen=True)
class Arguments:
    """The kernel's arguments: now, and what every entry of the boot loader has; None where it cannot be read.

    overriding: the file that keeps a drop-in of GRUB from having an effect.
    """

    tool: str | None = None
    running: tuple[str, ...] | None = None
    configured: tuple[str, ...] | None = None
    overriding: str | None = None


@dataclass(frozen=True)
class Interface:
    """The processors that handle a network interface's interrupts; cpus: those of its NUMA node."""

    node: int | None = None
    cpus: str | None = None
    irqs: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class ProcessLimit:
    """A limit of a process: numbers, or unlimited."""

    soft: Any = None
    hard: Any = None
    pid: int | None = None


@dataclass(frozen=True)
class Fresh:
    """Limits of what was started to see them; empty where it did not start."""

    login: dict[str, ProcessLimit] = field(default_factory=dict)
    unit: dict[str, ProcessLimit] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """ceiling: the value above which a limit cannot be raised; services: the process of each that has least."""

    ceiling: dict[str, Any] = field(default_factory=dict)
    services: dict[str, dict[str, ProcessLimit]] = field(default_factory=dict)
    fresh: Fresh | None = None


@dataclass(frozen=True)
class Subnet:
    """A subnet in which several interfaces have an address."""

    subnet: str
    interfaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class TunedNode:
    """The whole fact."""

    container: bool = False
    recorded: bool = False
    sysctl: dict[str, Switch] = field(default_factory=dict)
    sysctl_lines: tuple[Line, ...] = ()
    switches: dict[str, Switch] = field(default_factory=dict)
    tuned: Tuned = field(default_factory=Tuned)
    logind: Logind = field(default_factory=Logind)
    arguments: Arguments = field(default_factory=Arguments)
    interfaces: dict[str, Interface] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    numa_nodes: int = 0
    shared_subnets: tuple[Subnet, ...] = ()
    neighbours: int = 0
    memory_kib: int | None = None
    huge_page_kib: int | None = None

    @property
    def is_tuneds(self) -> bool:
        """Return True if tuned is the owner; the one of a container would change its host."""
        return self.tuned.in_charge and not self.container
