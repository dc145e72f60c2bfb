# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a candidate of the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from ...model import Candidate
from ...rows import BranchRow, Flavour, Naming, Source
from ...tables import Nothing, Subject

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class KernelRow(TypedDict):
    """A driver that was seen not to build from a kernel on.

    contains: what the releases of these kernels have in them; older: older branches do not, either.
    """

    branch: int
    driver: str
    older: NotRequired[bool]
    kernel: str
    contains: NotRequired[str]
    kernel_modules: list[Flavour]


class NamesByFlavour(TypedDict):
    common: list[str]
    open: list[str]
    proprietary: list[str]


class SuiteRow(TypedDict):
    """The driver in one suite of a distribution's archive."""

    suite: str
    version: str
    revision: str
    kernel_modules: list[Flavour]
    pinned: dict[str, str]


class ArchiveRow(TypedDict):
    """A driver branch in a distribution's archive."""

    id: str
    version: str
    branch: int
    components: list[str]
    suites: list[SuiteRow]
    packages: NamesByFlavour
    other_sources: list[str]
    dkms_module: dict[Flavour, str]
    precompiled: NotRequired[dict[Flavour, list[str]]]
    fabric_manager: NotRequired[str]
    advice: NotRequired[str]


class DriverPackagesRow(TypedDict):
    """NVIDIA's packages of the branches from first to last."""

    naming: Naming
    first: int
    last: NotRequired[int]
    packages: NamesByFlavour
    fabric_manager: str
    imex: str
    pinning: list[str]
    other_sources: list[str]
    module_stream: NotRequired[dict[Flavour, str]]
    precompiled_stream: NotRequired[str]
    dkms_module: dict[Flavour, str]


# A distribution's packages of one driver branch that only bring in those of another.
Transition = TypedDict("Transition", {"id": str, "version": str, "from": int, "to": int})


# What NVIDIA appends to a driver's version in its packages for Ubuntu, from a version on.
Revision = TypedDict("Revision", {"from": str, "driver": str | None, "addon": str | None})


class Archives(TypedDict):
    transitional: list[Transition]


class InstallerOptions(TypedDict):
    """Options of NVIDIA's installer, from a branch on."""

    first: int
    open: list[str]
    proprietary: list[str]


class DriverPackages(TypedDict):
    held: dict[Naming, list[str]]
    installer_options: list[InstallerOptions]
    ubuntu_revisions: list[Revision]


KERNELS = Subject("kernels", KernelRow, Nothing)
ARCHIVES = Subject("archives", ArchiveRow, Archives)
PACKAGES = Subject("driver_packages", DriverPackagesRow, DriverPackages)


class Origin(TypedDict):
    """The place where a version of a driver was seen; archive, suite and moves of one in a distribution's archive.

    moves: whether the archive replaces this version by the next. known: False for a version that no table has.
    """

    archive: NotRequired[ArchiveRow]
    suite: NotRequired[SuiteRow]
    moves: NotRequired[bool]
    known: NotRequired[bool]


class DriverRow(Origin):
    """A driver branch, from one source, with one kind of kernel modules."""

    branch: BranchRow
    source: Source
    kernel_modules: Flavour


Driver = Candidate[DriverRow]
