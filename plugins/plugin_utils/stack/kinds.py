# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The candidates of each kind, and the slots of a solution by their component."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from .interpreters import PythonChoice
from .model import Candidate, Solution
from .rows import (
    Accelerator,
    ArchiveRow,
    BranchRow,
    CudaRow,
    CudnnRow,
    CupyRow,
    DistroRow,
    Flavour,
    GpuRow,
    HorovodRow,
    LibraryRow,
    Source,
    SuiteRow,
    TensorflowRow,
    TorchBuild,
    TorchRow,
)

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class Origin(TypedDict):
    """Where a version of a driver was seen; archive, suite and moves of one in a distribution's archive.

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


class TorchChoice(TorchBuild):
    """A build of PyTorch, with the release it belongs to; plain: taken from the general package index."""

    release: TorchRow
    plain: bool


class HorovodChoice(HorovodRow):
    """A release of Horovod compiled for one target: GPUs, or processors only."""

    target: Accelerator


class CupyChoice(CupyRow):
    """A wheel of CuPy, with the major of the CUDA it is built for."""

    cuda: str


Driver = Candidate[DriverRow]
Toolkit = Candidate[CudaRow]
Cudnn = Candidate[CudnnRow]
Library = Candidate[LibraryRow]  # NCCL, or cuDNN
Torch = Candidate[TorchChoice]
Tensorflow = Candidate[TensorflowRow]
Cupy = Candidate[CupyChoice]
Horovod = Candidate[HorovodChoice]
Python = Candidate[PythonChoice]
System = Candidate[DistroRow]
GpuModel = Candidate[GpuRow]
Machine = Candidate[None]
AnsibleCore = Candidate[None]
Kernel = Candidate[None]


class Host(TypedDict, total=False):
    """What a solution puts on the host itself."""

    driver: Driver
    cuda: Toolkit
    cudnn: Library
    nccl: Library


class Environment(TypedDict, total=False):
    """What a solution puts in one environment."""

    python: Python
    pytorch: Torch
    tensorflow: Tensorflow
    cupy: Cupy
    horovod: Horovod


def on_host(solution: Solution) -> Host:
    """Return what a solution puts on the host itself, by component."""
    return cast(
        Host, {slot.component: one for slot, one in solution.items() if not slot.environment and not one.absent}
    )


def inside(solution: Solution, name: str) -> Environment:
    """Return what a solution puts in an environment, by component."""
    return cast(Environment, {slot.component: one for slot, one in solution.items() if slot.environment == name})
