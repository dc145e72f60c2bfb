# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine consists of. Machines are data; see machines.py for some, and recording.py for how hosts see them."""

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Model:
    """A GPU as it is sold. Watts, MiB, and NVML's numbers for architecture and NVLink version."""

    name: str
    device_id: int
    architecture: int
    compute_capability: str
    memory_mib: int
    power: "tuple[int, int, int]"  # default, min, max
    pcie: "tuple[int, int]" = (4, 16)  # generation, width
    ecc: bool = True
    mig: bool = False
    nvlink_version: int = 0
    nvlinks: int = 0
    subsystem: int = 0  # of NVIDIA; every board has its own
    vgpu: bool = False  # made by a hypervisor's vGPU software


@dataclass(frozen=True)
class Mig:
    name: str
    gpu_instance: int
    memory_mib: int


@dataclass(frozen=True)
class Gpu:
    """One GPU: ``path`` from the host bridge to the device; ``links`` [(remote type, remote address)] in order."""

    model: Model
    path: "tuple[str, ...]"
    numa: int = 0
    minor: int = 0
    links: "tuple[tuple[str, str | None], ...]" = ()
    width: "int | None" = None
    lost: bool = False
    failing: "tuple[int, int] | None" = None  # (NVML's return code, calls that a program gets answered before)
    hidden: bool = False
    driver: "str | None" = None  # of the kernel, where sysfs is to name it
    mig: "tuple[Mig, ...]" = ()
    settings: "tuple[tuple[str, str], ...]" = ()  # further lines of the NVML profile

    @property
    def address(self) -> str:
        return self.path[-1]

    @property
    def uuid(self) -> str:
        digits = self.address.replace(":", "").replace(".", "")
        return f"GPU-{digits[:8]}-0000-4000-8000-{digits.zfill(12)[-12:]}"


@dataclass(frozen=True)
class Nic:
    """A host channel adapter with one port."""

    name: str
    path: "tuple[str, ...]"
    numa: int = 0
    state: str = "ACTIVE"
    link_layer: str = "InfiniBand"
    rate_gbps: int = 200
    netdev: "str | None" = None
    firmware: "str | None" = None
    board: "str | None" = None

    @property
    def address(self) -> str:
        return self.path[-1]


@dataclass(frozen=True)
class Machine:
    name: str
    gpus: "tuple[Gpu, ...]" = ()
    nics: "tuple[Nic, ...]" = ()
    nvswitches: "tuple[tuple[str, ...], ...]" = ()  # PCI paths
    numa: "dict[int, str]" = field(default_factory=lambda: {0: "0-7"})
    packages: "int | None" = None  # of processors, with equally many NUMA nodes; None: one for each NUMA node
    distances: "dict[int, list[int]]" = field(default_factory=dict)  # of NUMA nodes, where they are not 10 and 20
    driver: "str | None" = "535.309.01"  # of the loaded kernel module
    library: "str | None" = "535.309.01"
    kernel_modules: str = "proprietary"
    cuda: int = 12020
    uptime: int = 10 * 24 * 3600  # seconds
    files: "tuple[tuple[str, str], ...]" = ()  # (path below the recorded sys, proc or root, text), after all others
    several_bridges: "tuple[str, ...]" = ()  # bridges with ACS redirection

    def without_driver(self) -> "Machine":
        return replace(self, driver=None, library=None)

    def with_library(self, version: "str | None") -> "Machine":
        return replace(self, library=version)

    def with_files(self, files: "dict[str, str]") -> "Machine":
        """Return the same machine with more or other files: sys/…, proc/… of the kernel's trees, root/… of all else."""
        return replace(self, files=(*self.files, *files.items()))

    def change(self, number: int, **what) -> "Machine":
        """Return the same machine with one GPU changed (``lost``, ``hidden``, ``width``, ``links`` …)."""
        gpus = list(self.gpus)
        gpus[number] = replace(gpus[number], **what)
        return replace(self, gpus=tuple(gpus))
