# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The columns of each table in data/stack, as far as the resolver reads it; schema.json there names every column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

Arch = Literal["x86_64", "aarch64"]
Accelerator = Literal["cuda", "cpu"]
Flavour = Literal["open", "proprietary"]
Source = Literal["nvidia", "distribution", "runfile", "vendor"]
Service = Literal["fabric_manager", "subnet_manager", "imex"]
Naming = Literal["ubuntu", "debian", "el"]


class AnsibleCoreRow(TypedDict):
    version: str
    target_python: list[str]


class PublishedRow(TypedDict):
    """A row of a release that the tables lack: where and on which day it was read."""

    component: str
    version: str
    source: str
    read: str
    row: dict[str, Any]


class DistroRow(TypedDict):
    id: str
    version: str
    family: Literal["debian", "el"]
    package_manager: Literal["apt", "dnf"]
    python: str
    pythons: dict[str, list[str]]  # the packages of each interpreter for environments
    glibc: str | None
    gcc: str | None
    repository: str
    drivers: list[Source]
    driver_first: NotRequired[int | None]
    driver_seen: NotRequired[int]
    driver_last: NotRequired[int]
    modularity: NotRequired[bool]
    status: Literal["supported", "eol"]
    cuda_first: str | None
    cuda_seen: NotRequired[str]
    cuda_last: NotRequired[str]
    advice: NotRequired[str]


class GpuRow(TypedDict):
    model: str
    names: NotRequired[list[str]]
    arch: NotRequired[Arch]  # of the processors on the same board
    architecture: str
    compute_capability: str
    forward_compat: bool | None
    min_driver: str | None
    known_driver: NotRequired[str]
    min_cuda: str
    max_driver_branch: NotRequired[int]
    kernel_modules: list[Flavour]
    pci_ids: list[str]
    # In no table: the models that a name with several meanings may stand for; the chip whose generation is all that is
    # known of a GPU; whether it is a vGPU.
    ambiguous: NotRequired[list[str]]
    chip: NotRequired[str]
    vgpu: NotRequired[bool]


class ArchitectureRow(TypedDict):
    """A GPU generation, for GPUs without a row of their own."""

    architecture: str
    chips: list[str]
    compute_capability: str
    min_cuda: str
    max_driver_branch: NotRequired[int]
    kernel_modules: list[Flavour]


class ChipRow(TypedDict):
    """The products with a chip: device ids with names, and of some of them the vGPUs by subsystem id."""

    chip: str
    devices: dict[str, str]
    vgpus: NotRequired[dict[str, dict[str, str]]]


class BoardRow(TypedDict):
    """GPUs behind NVSwitches; switches: pci (counted on the node), hidden, or rack (in other trays)."""

    board: str
    gpus: list[str]
    switches: Literal["pci", "hidden", "rack"]
    full: int
    services: list[Service]


class BranchRow(TypedDict):
    """A driver branch of NVIDIA."""

    branch: int
    type: str | None
    eol: NotRequired[str | None]
    status: Literal["supported", "unknown", "eol"]
    cuda: str
    latest: str | None
    kernel_modules: list[Flavour]


class CudaRow(TypedDict):
    version: str
    min_driver: str
    updates: dict[str, str | None]
    cudart: NotRequired[dict[str, str]]
    min_cc: str
    gcc_max: str
    forward_compat_branches: list[int]


class CondaRow(TypedDict):
    """The packages of PyTorch's releases in conda's channels, from first to last."""

    first: str
    last: str
    channels: list[str]
    package: str
    builds: dict[str, str]
    arch: list[Arch]


class RepositoryRow(TypedDict):
    slug: str
    package_manager: Literal["apt", "dnf"]
    key: str
    key_fingerprint: str | None
    pin_priority: NotRequired[int]
