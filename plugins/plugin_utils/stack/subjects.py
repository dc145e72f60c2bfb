# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tables of data/stack hold beside their rows, as far as the resolver reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from .rows import Accelerator, Arch, Naming

# A distribution's packages of one driver branch that only bring in those of another.
Transition = TypedDict("Transition", {"id": str, "version": str, "from": int, "to": int})
# What NVIDIA appends to a driver's version in its packages for Ubuntu, from a version on.
Revision = TypedDict("Revision", {"from": str, "driver": str | None, "addon": str | None})


class Archives(TypedDict):
    transitional: list[Transition]


class Conda(TypedDict):
    base_channel: str


class CxxStandard(TypedDict):
    """The C++ standard of PyTorch's headers from a release on, and the first g++ that compiles them."""

    torch: str
    standard: int
    gcc_min: str


class BuildPackages(TypedDict):
    """What compiles, by package manager; headers: what the name of an interpreter's package ends in that has its headers."""

    names: list[str]
    headers: str


class Horovod(TypedDict):
    build_environment: dict[Accelerator | Literal["all"], dict[str, str]]
    controllers: list[str]
    operations: dict[Accelerator, list[str]]
    cxx_standards: list[CxxStandard]
    packages: dict[str, BuildPackages]
    requirements: list[str]
    tools: list[str]


class InstallerOptions(TypedDict):
    """Options of NVIDIA's installer, from a branch on."""

    first: int
    open: list[str]
    proprietary: list[str]


class DriverPackages(TypedDict):
    held: dict[Naming, list[str]]
    installer_options: list[InstallerOptions]
    ubuntu_revisions: list[Revision]


class Repositories(TypedDict):
    base_url: str
    arch_directories: dict[Arch, str]
    origin: str
    label: str
    sha1_keys: list[str]
    retired_keys: list[str]


class Torch(TypedDict):
    index_url: str
    never_existing_tags: list[str]
    aarch64_sass: dict[str, list[str]]
    plain_aarch64_first: str


class Profile(TypedDict):
    request: Mapping[str, Any]  # judged as a user's own would be


class Profiles(TypedDict):
    profiles: dict[str, Profile]


class Subjects(TypedDict):
    """What is read of the tables beside their rows; Tables.rows has those of every subject."""

    archives: Archives
    conda: Conda
    driver_packages: DriverPackages
    horovod: Horovod
    profiles: Profiles
    repositories: Repositories
    torch: Torch
