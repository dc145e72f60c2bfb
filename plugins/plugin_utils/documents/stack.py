# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The desired state of a node: fact gpu_stack (action resolve_stack) as a value, as far as others than the resolver read it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Package:
    """A package of the distribution's package manager; version: None for any, else exact or a shell pattern."""

    name: str
    version: str | None = None


@dataclass(frozen=True)
class System:
    """The operating system."""

    id: str = ""
    version: str = ""
    arch: str = ""
    family: str = ""


@dataclass(frozen=True)
class Gpus:
    """GPUs of one model."""

    model: str = ""
    count: int = 1
    compute_capability: str | None = None


@dataclass(frozen=True)
class Precompiled:
    """Kernel modules that come compiled and signed: packages, and those of the driver's that they replace."""

    packages: tuple[Package, ...] = ()
    replaces: tuple[str, ...] = ()
    module_stream: str | None = None


@dataclass(frozen=True)
class Component:
    """The fields of every packaged component."""

    version: str | None = None
    packages: tuple[Package, ...] = ()
    held: tuple[str, ...] = ()


@dataclass(frozen=True)
class FabricManager(Component):
    """The fabric manager; kernel_modules: those in addition to the driver's that it needs."""

    kernel_modules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Driver(Component):
    """The NVIDIA driver."""

    branch: str = ""
    source: str = "nvidia"  # nvidia | distribution | runfile | vendor
    owner: str | None = None  # who installs it, if the source is vendor
    kernel_modules: str = ""  # open | proprietary
    package_manager: str = ""
    pinning_packages: tuple[Package, ...] = ()
    conflicting: tuple[str, ...] = ()
    components: tuple[str, ...] = ()  # of the distribution's archive
    dkms_module: str | None = None
    precompiled: Precompiled | None = None
    module_stream: str | None = None

    @property
    def is_left(self) -> bool:
        """Return True if another owner is in charge of it: then it is neither changed nor held."""
        return self.source == "vendor"

    @property
    def version_pattern(self) -> str:
        """Return the pattern that an installed version must match: a distribution's archive has one per branch, and decides which."""
        moving = self.source == "distribution" or not self.version
        return f"{self.branch}.*" if self.branch and moving else self.version or "*"


@dataclass(frozen=True)
class Toolkit(Component):
    """The CUDA toolkit."""

    home: str = ""


@dataclass(frozen=True)
class ContainerToolkit(Component):
    """The NVIDIA Container Toolkit; cdi: the CDI specification; cdi_refresh: whether a service of its own writes it."""

    cdi: str = ""
    cdi_refresh: bool = False


@dataclass(frozen=True)
class Index:
    """A wheel index of a framework's own."""

    name: str
    url: str = ""


@dataclass(frozen=True)
class Interpreter:
    """The source of an environment's interpreter; path: None for a standalone build, which uv puts in its own place."""

    source: str = "distribution"  # distribution | standalone | conda | path
    path: str | None = None
    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Libraries:
    """The libraries of PyTorch's build, as far as they are known."""

    cuda: str | None = None
    cudnn: str | None = None
    nccl: str | None = None


@dataclass(frozen=True)
class Source:
    """The archive that something is compiled from."""

    file: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Build:
    """The way Horovod is compiled, as far as the wheel depends on it."""

    version: str = ""
    source: Source = Source()
    cxx_standard: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Environment:
    """A Python environment; interpreter: None in a lock of an older collection."""

    name: str
    python: str = ""
    accelerator: str = ""
    requirements: tuple[str, ...] = ()
    index: Index | None = None
    frameworks: dict[str, str] = field(default_factory=dict)
    interpreter: Interpreter | None = None
    libraries: Libraries | None = None
    build: Build | None = None


@dataclass(frozen=True)
class Reason:
    """The reason for a component's version."""

    component: str
    text: str


@dataclass(frozen=True)
class Stack:
    """A node in its desired state. A component that is None is not planned."""

    os: System = System()
    gpus: tuple[Gpus, ...] = ()
    driver: Driver | None = None
    fabric_manager: FabricManager | None = None
    imex: Component | None = None
    cuda: Toolkit | None = None
    cudnn: Component | None = None
    nccl: Component | None = None
    dcgm: Component | None = None
    container_toolkit: ContainerToolkit | None = None
    python: str | None = None
    environments: tuple[Environment, ...] = ()
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[str, ...] = ()
    table_version: str = ""

    @property
    def gpu_count(self) -> int:
        """Return the number of planned GPUs."""
        return sum(gpus.count for gpus in self.gpus)
