# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a candidate of Horovod."""

from __future__ import annotations

from typing import Literal, TypedDict

from ...model import Candidate
from ...rows import Accelerator
from ...tables import Subject


class SourceArchive(TypedDict):
    """The source of a release without wheels in the package index; standard_files: which of it set the C++ standard."""

    file: str
    sha256: str
    standard_files: list[str]


class HorovodRow(TypedDict):
    """torch_below: by accelerator, as CUDA code was not compiled with every C++ standard; and next to TensorFlow, for GPUs."""

    version: str
    requirement: str
    source: SourceArchive
    cxx_std: int
    torch_below: dict[Accelerator, str]
    torch_below_with_tensorflow: str
    tensorflow_below: str
    python_below: str
    gcc_min: str
    gcc_max: str


class CxxStandard(TypedDict):
    """The C++ standard of PyTorch's headers from a release on, and the first g++ that compiles them."""

    torch: str
    standard: int
    gcc_min: str


class BuildPackages(TypedDict):
    """The packages that compile, by package manager; headers: what the name of an interpreter's package ends in that has its headers."""

    names: list[str]
    headers: str


class HorovodTable(TypedDict):
    build_environment: dict[Accelerator | Literal["all"], dict[str, str]]
    controllers: list[str]
    operations: dict[Accelerator, list[str]]
    cxx_standards: list[CxxStandard]
    packages: dict[str, BuildPackages]
    requirements: list[str]
    tools: list[str]


HOROVOD_ROWS = Subject("horovod", HorovodRow, HorovodTable)


class HorovodChoice(HorovodRow):
    """A release of Horovod compiled for one target: GPUs, or processors only."""

    target: Accelerator


Horovod = Candidate[HorovodChoice]
