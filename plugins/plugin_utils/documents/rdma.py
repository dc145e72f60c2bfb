# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The RDMA state of a node: fact gpu_rdma (module rdma_facts) as a value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

# IEEE 802.1Q has as many, and as many traffic classes at most.
PRIORITIES = 8


def _are_below(count: int, numbers: Iterable[int]) -> bool:
    return all(0 <= one < count for one in numbers)


@dataclass(frozen=True)
class RdmaPort:
    """A port of an adapter; link_layer: InfiniBand or Ethernet."""

    port: int = 1
    link_layer: str | None = None
    state: str | None = None
    physical_state: str | None = None
    rate_gbps: float | None = None
    netdevs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Adapter:
    """A host channel adapter; p2p: what EFA's own driver says of the GPUs' driver, None where there is no such file."""

    name: str = ""
    pci_bus_id: str | None = None
    numa_node: int | None = None
    driver: str | None = None
    firmware: str | None = None
    guid: str | None = None
    virtual: bool = False
    node_type: str | None = None
    p2p: str | None = None
    ports: tuple[RdmaPort, ...] = ()

    @property
    def is_active(self) -> bool:
        """Return True if any of its ports carries traffic."""
        return any(port.state == "ACTIVE" for port in self.ports)


@dataclass(frozen=True)
class Ipoib:
    """An interface that carries IP over InfiniBand."""

    mode: str | None = None
    mtu: int | None = None


@dataclass(frozen=True)
class Ets:
    """Of each traffic class, how it is served and its percentage; classes: that of each priority."""

    tsa: tuple[str, ...] = ()
    bandwidth: tuple[int, ...] = ()
    classes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse lists that do not fit each other: a node says them."""
        count = len(self.tsa)
        if len(self.bandwidth) != count or len(self.classes) != PRIORITIES or not _are_below(count, self.classes):
            raise ValueError("the service and percentage of each traffic class, and the class of each of 8 priorities")


@dataclass(frozen=True)
class Buffers:
    """Of each priority, the buffer that receives it; sizes: bytes of each buffer."""

    of: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse lists that do not fit each other: a node says them."""
        if len(self.of) != PRIORITIES or not _are_below(len(self.sizes), self.of):
            raise ValueError("the buffer of each of 8 priorities, and the size of each buffer")


@dataclass(frozen=True)
class Bridging:
    """Data centre bridging of an interface; None for what the port does not have.

    apps: {DSCP: priority}; default: priority of the rest; pfc: priorities that lose nothing.
    """

    apps: dict[str, int] | None = None
    default: int | None = None
    pfc: tuple[int, ...] | None = None
    ets: Ets | None = None
    buffers: Buffers | None = None
    dcbx: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a priority that there is none of: a node says it."""
        named = [*(self.apps or {}).values(), *(self.pfc or ()), self.default or 0]
        if not _are_below(PRIORITIES, named):
            raise ValueError("a port whose priorities are 0 to 7")


@dataclass(frozen=True)
class TrafficClass:
    """The requests of NCCL's file on the node; forced: settings that a driver applies to every connection of an adapter."""

    nccl: str | None = None
    forced: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """libibverbs' answers about an adapter."""

    code: str = "not_asked"
    errno: int | None = None


@dataclass(frozen=True)
class Verbs:
    """code: ok, or why no adapter was asked."""

    code: str = "not_asked"
    adapters: dict[str, Answer] = field(default_factory=dict)


@dataclass(frozen=True)
class Cuda:
    """code: ok, or why no GPU was asked; gpus: by PCI address, whether they export DMA buffers."""

    code: str = "not_asked"
    status: int | None = None
    version: int | None = None
    gpus: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Peermem:
    """nvidia_peermem: version of the loaded module, what the RDMA core lists, and whether it is registered there.

    offered: whether the RDMA core takes clients at all.
    """

    module: str | None = None
    clients: dict[str, str] = field(default_factory=dict)
    registered: bool | None = None
    offered: bool | None = None


@dataclass(frozen=True)
class GpuDirect:
    """The conditions of GPUDirect RDMA."""

    verbs: Verbs = field(default_factory=Verbs)
    cuda: Cuda = field(default_factory=Cuda)
    peermem: Peermem = field(default_factory=Peermem)


@dataclass(frozen=True)
class RdmaNode:
    """The whole fact."""

    adapters: tuple[Adapter, ...] = ()
    recorded: bool = False
    ipoib: dict[str, Ipoib] = field(default_factory=dict)
    dcb: dict[str, Bridging] = field(default_factory=dict)
    dcb_program: bool = False
    dcb_agent: bool = False
    traffic_class: TrafficClass = field(default_factory=TrafficClass)
    gpudirect: GpuDirect | None = None


@dataclass(frozen=True)
class Path:
    """The way NCCL reaches the memory of GPUs (PCI addresses): dma-buf, peermem, driver, none or unknown; reasons: sentences."""

    gpus: tuple[str, ...] = ()
    path: str = ""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChainRecord:
    """The way of NCCL's traffic class through a port."""

    interface: str = ""
    whole: bool = False
    sentence: str = ""


@dataclass(frozen=True)
class AdapterRecord:
    """An adapter as the report shows it; gpudirect: empty where libibverbs was not asked."""

    name: str = ""
    ports: tuple[RdmaPort, ...] = ()
    gpudirect: tuple[Path, ...] = ()
    chains: tuple[ChainRecord, ...] = ()
