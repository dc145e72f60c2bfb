# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCIe between GPUs and adapters: fact gpu_pcie (module pcie_facts) as a value, and what was concluded from it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Link:
    """A link's current state and the device's capability."""

    width: int | None = None
    max_width: int | None = None
    generation: int | None = None
    max_generation: int | None = None


@dataclass(frozen=True)
class Port:
    """The content of a configuration space; acs: the control register, None without the capability; sizes are bytes."""

    readable: bool = False
    port: str | None = None
    acs: int | None = None
    read_request: int | None = None
    payload: int | None = None
    relaxed_ordering: bool | None = None
    link: Link | None = None


@dataclass(frozen=True)
class Device(Port):
    """A GPU or an adapter; path: the host bridge first, then bridges, then the device."""

    address: str = ""
    kind: str = ""
    name: str | None = None
    path: tuple[str, ...] = ()
    iommu_group: str | None = None
    iommu_type: str | None = None


@dataclass(frozen=True)
class Iommu:
    """The IOMMUs that the kernel drives, and what its arguments say of them."""

    units: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guests:
    """The devices that virtual machines were given."""

    devices: tuple[str, ...] = ()
    mediated: tuple[str, ...] = ()


@dataclass(frozen=True)
class PcieNode:
    """The whole fact."""

    recorded: bool = False
    devices: tuple[Device, ...] = ()
    bridges: dict[str, Port] = field(default_factory=dict)
    iommu: Iommu = field(default_factory=Iommu)
    guests: Guests = field(default_factory=Guests)
    virtual: bool = False


@dataclass(frozen=True)
class PciePair:
    """A GPU with another one or with an adapter, as the report shows them.

    verdict: direct, redirected, root_complex, translated or unknown; reasons: sentences.
    """

    one: str = ""
    other: str = ""
    verdict: str = ""
    reasons: tuple[str, ...] = ()
