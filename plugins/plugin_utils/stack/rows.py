# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a row of each table in data/stack holds, as far as the resolver reads it; schema.json there names every column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

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
    driver_first: NotRequired[int]
    driver_last: NotRequired[int]
    modularity: NotRequired[bool]
    status: Literal["supported", "eol"]
    cuda_first: str | None
    cuda_last: str | None
    advice: NotRequired[str]


class GpuRow(TypedDict):
    model: str
    names: NotRequired[list[str]]
    architecture: str
    compute_capability: str
    forward_compat: bool | None
    min_driver: str | None
    min_cuda: str
    max_driver_branch: int | None
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
    max_driver_branch: int | None
    kernel_modules: list[Flavour]


class ChipRow(TypedDict):
    """What is made of a chip: device ids with names, and of some of them the vGPUs by subsystem id."""

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
    eol: str | None
    status: Literal["supported", "unknown", "eol"]
    cuda: str
    latest: str | None
    kernel_modules: list[Flavour]


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
    """How NVIDIA packages the branches from first to last."""

    naming: Naming
    first: int
    last: int | None
    packages: NamesByFlavour
    fabric_manager: str
    imex: str
    pinning: list[str]
    other_sources: list[str]
    module_stream: NotRequired[dict[Flavour, str]]
    precompiled_stream: NotRequired[str]
    dkms_module: dict[Flavour, str]


class CudaRow(TypedDict):
    version: str
    min_driver: str
    updates: dict[str, str]
    cudart: NotRequired[dict[str, str]]
    min_cc: str
    forward_compat_branches: list[int]


class LibraryRow(TypedDict):
    """A build of a library that stands in the CUDA repository: of NCCL, and with min_cc of cuDNN."""

    version: str
    cuda: str
    repositories: list[str]


class CudnnRow(LibraryRow):
    cuda_last: NotRequired[str]
    min_cc: str


class TorchBuild(TypedDict):
    """A wheel of a PyTorch release; the one for CPUs has its tag only."""

    tag: str
    cuda: NotRequired[str]
    cudnn: NotRequired[str | None]
    nccl: NotRequired[str | None]
    sass: NotRequired[list[str] | None]
    ptx: NotRequired[str | None]
    default: NotRequired[bool]
    unverified: NotRequired[list[str]]


class TorchRow(TypedDict):
    """glibc: None where the wheels' tag does not tell it; torchvision and torchaudio: the newest that take this very release."""

    version: str
    released: NotRequired[str]
    python: list[str]
    glibc: str | None
    platforms: NotRequired[dict[Arch, str]]
    torchvision: NotRequired[str]
    torchaudio: NotRequired[str]
    builds: list[TorchBuild]


class TensorflowRow(TypedDict):
    releases: list[str]
    python: list[str]
    glibc: str
    cuda: str
    cudnn: str
    and_cuda: bool
    pins: dict[str, str] | None
    sass: list[str] | None
    ptx: str | None


class CupyRow(TypedDict):
    python: list[str]
    wheels: dict[str, list[str]]
    min_cc: str | None
    max_cc: str | None
    numpy: str


class SourceArchive(TypedDict):
    """What the package index has of a release without wheels; standard_files: which of it set the C++ standard."""

    file: str
    sha256: str
    standard_files: list[str]


class HorovodRow(TypedDict):
    """torch_below: by accelerator, as CUDA code was not compiled with every C++ standard."""

    version: str
    requirement: str
    source: SourceArchive
    cxx_std: int
    torch_below: dict[Accelerator, str]
    tensorflow_below: str
    python_below: str
    gcc_min: str


class CondaRow(TypedDict):
    """How conda's channels carry PyTorch's releases from first to last."""

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
    pin_priority: int | None
