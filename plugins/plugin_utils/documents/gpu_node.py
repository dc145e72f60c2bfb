# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The measured machine: fact gpu_node (module gpu_facts) as a value, as far as the controller reads it.

None stands for what could not be measured, or what the device does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...module_utils.machine.topology import gpu_label
from .values import MOST_CPUS, is_cpu_list

# Several times what machines have, with the adapters that they make for guests.
MOST_SWITCHES, MOST_DEVICES = 64, 1000
_label: Callable[[Mapping[str, object]], str] = gpu_label  # Python 3.6 on the nodes: it has no types of its own


@dataclass(frozen=True)
class MeasuredDriver:
    """Versions of the loaded kernel module and of the library."""

    loaded_version: str | None = None
    library_version: str | None = None
    kernel_modules: str | None = None  # open | proprietary


@dataclass(frozen=True)
class PcieLink:
    """A link's current state and its capability."""

    generation: int | None = None
    max_generation: int | None = None
    width: int | None = None
    max_width: int | None = None


@dataclass(frozen=True)
class NvLink:
    """One NVLink of a GPU."""

    active: bool = False
    remote_type: str | None = None  # gpu | npu | nvswitch
    remote_pci_bus_id: str | None = None


@dataclass(frozen=True)
class Mode:
    """A mode that changes with a reset."""

    current: bool | None = None
    pending: bool | None = None


@dataclass(frozen=True)
class Mig(Mode):
    """Multi-instance mode, with the MIG devices that are set up."""

    instances: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class PowerLimit:
    """Watts."""

    current: float | None = None
    default: float | None = None


@dataclass(frozen=True)
class Gpu:
    """One GPU; without an index NVML does not show it, and it goes by its PCI address."""

    index: int | None = None
    minor_number: int | None = None
    name: str | None = None
    pci_bus_id: str | None = None
    pci_device_id: str | None = None
    pci_name: str | None = None  # of the node's PCI ID database
    compute_capability: str | None = None
    memory_total_mib: float | None = None
    numa_node: int | None = None
    cpu_affinity: str | None = None
    nvlinks: tuple[NvLink, ...] = ()
    pcie: PcieLink = PcieLink()
    persistence_mode: bool | None = None
    ecc: Mode = Mode()
    mig: Mig = Mig()
    power_limit_watts: PowerLimit = PowerLimit()
    seen_by: tuple[str, ...] = ()  # pci, nvml

    def __post_init__(self) -> None:
        """Refuse what no machine has: every reader counts the CPUs, and Slurm's files name the device."""
        if not is_cpu_list(self.cpu_affinity or "") or not 0 <= (self.minor_number or 0) < MOST_CPUS:
            raise ValueError("a GPU with the number of a device file and a list of CPUs such as 0-31,64-95")

    @property
    def label(self) -> str:
        """Return its name in the topology."""
        return _label({"index": self.index, "pci_bus_id": self.pci_bus_id})


@dataclass(frozen=True)
class Port:
    """A port of a host channel adapter."""

    state: str | None = None
    link_layer: str | None = None
    rate_gbps: float | None = None


@dataclass(frozen=True)
class Nic:
    """A host channel adapter."""

    name: str = ""
    numa_node: int | None = None
    ports: tuple[Port, ...] = ()
    firmware_version: str | None = None
    board_id: str | None = None  # PSID of the vendor: boards of the same one take the same firmware


@dataclass(frozen=True)
class NvSwitches:
    """The NVSwitches on the PCI bus."""

    count: int = 0

    def __post_init__(self) -> None:
        """Refuse what no machine has: the picture of the machine has a box for each."""
        if not 0 <= self.count <= MOST_SWITCHES:
            raise ValueError(f"a machine of at most {MOST_SWITCHES} NVSwitches")


@dataclass(frozen=True)
class GpuNode:
    """The machine. topology: {device: {device: code of "nvidia-smi topo -m"}}."""

    driver: MeasuredDriver = MeasuredDriver()
    gpus: tuple[Gpu, ...] = ()
    nvswitches: NvSwitches = NvSwitches()
    nics: tuple[Nic, ...] = ()
    topology: dict[str, dict[str, str | None]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no machine has: each device has a row and a column of the matrix."""
        if max(len(self.gpus), len(self.nics)) > MOST_DEVICES:
            raise ValueError(f"a machine of at most {MOST_DEVICES} GPUs and as many adapters")
