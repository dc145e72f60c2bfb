# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One thing the plan asks for next to what the node has: what drift finds, verification writes and the report reads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(str, Enum):
    """The result of a comparison."""

    AS_PLANNED = "as_planned"
    MISSING = "missing"  # planned and not there
    DIFFERS = "differs"  # there, and not as planned
    UNWANTED = "unwanted"  # there, and in the way of the plan
    UNKNOWN = "unknown"  # could not be measured, or what is wanted could not be decided

    @classmethod
    def _missing_(cls, value: object) -> Status | None:
        """Take a status that only newer writers know for unknown: what cannot be interpreted is not success."""
        return cls.UNKNOWN if isinstance(value, str) else None


class Remedy(str, Enum):
    """The one who fixes a difference: a step of a role, a person, or only another run."""

    NONE = "none"
    KERNEL = "kernel"  # base: install what the kernel of the next boot lacks
    REPAIR = "repair"  # base: finish what the package manager was interrupted in
    SOURCES = "sources"  # nvidia_driver: enable components of the distribution's archive
    INSTALL = "install"  # the component's role
    REMOVE = "remove"
    BUILD = "build"  # nvidia_driver: build the kernel module
    GENERATE = "generate"  # container_toolkit: write the CDI specification
    SERVICE = "service"  # the role of the service
    ENROL = "enrol"  # nvidia_driver: ask the firmware to trust the key that signs the kernel module
    CONFIRM = "confirm"  # a person at the console, at the next boot
    LOAD = "load"  # nvidia_driver: load the kernel module, or ask for a reboot
    REBOOT = "reboot"
    ENVIRONMENT = "environment"  # python_env and frameworks
    APPLY = "apply"  # the role that set it
    DECLARE = "declare"  # a person: what is declared cannot be had here
    FOREIGN = "foreign"  # a person: another tool sets what is ours to set
    DISKS = "disks"  # a person: what is on the disks, or where the scratch is to be, belongs to another owner
    LINE = "line"  # a person: a line in another tool's file
    RESTART = "restart"  # a person: what runs has old limits
    OVERRIDE = "override"  # a person: another file sets another value
    BOOT = "boot"  # a person: takes effect with a reboot, which no role makes for it
    LIBRARY = "library"  # a person: driver, libraries and kernel do not fit together
    RECONFIGURE = "reconfigure"  # the role that writes the file, and a person who has Slurm read it again
    RESUME = "resume"  # a person: who took the node out of service knows when it may come back
    OTHERS = "others"  # a person: those who run what the node is a part of
    MEASURE = "measure"  # the node could not be asked

    @classmethod
    def _missing_(cls, value: object) -> Remedy | None:
        """Take a remedy that only newer writers know for none of ours."""
        return cls.NONE if isinstance(value, str) else None


@dataclass(frozen=True)
class Comparison:
    """A desired value next to the observed one.

    component: a key of the stack, ``environment NAME``, or ``node``; subject: package, kernel release, service, …;
    desired and observed: text for people, empty where there is none.
    """

    component: str
    subject: str
    desired: str
    observed: str
    status: Status
    remedy: Remedy = Remedy.NONE
    kind: str = "version"  # package | module | key | version | service | source | requirement | python | files | state

    @property
    def differs(self) -> bool:
        """Return True if this is a difference; what is unknown is one, since it is not proof."""
        return self.status is not Status.AS_PLANNED


def compared(
    component: str,
    subject: str,
    desired: str | None,
    observed: str | None,
    agrees: bool | None,
    remedy: Remedy,
    kind: str,
) -> Comparison:
    """Compare; ``agrees`` None: not measured. What is absent is missing, whatever ``agrees`` says."""
    if agrees is None:
        status, remedy = Status.UNKNOWN, Remedy.MEASURE
    elif agrees:
        status, remedy = Status.AS_PLANNED, Remedy.NONE
    else:
        status = Status.DIFFERS if observed else Status.MISSING
    return Comparison(component, subject, desired or "", observed or "", status, remedy, kind)


def undecided(component: str, subject: str, desired: str, reason: str, kind: str) -> Comparison:
    """Compare what was not measured, or what cannot be decided for this reason, which also says what to do."""
    remedy = Remedy.NONE if reason else Remedy.MEASURE
    return Comparison(component, subject, desired, reason.rstrip("."), Status.UNKNOWN, remedy, kind)
