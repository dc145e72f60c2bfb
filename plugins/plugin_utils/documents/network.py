# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of a cluster as values: what module node_probe saw of a node, and what verify.json has of all."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Clock:
    """Seconds that the clock of another node is ahead: at least, at most."""

    least: float
    most: float


@dataclass(frozen=True)
class Peer:
    """Another node as one node sees it; clock is None where it could not be read."""

    address: str | None = None
    clock: Clock | None = None


@dataclass(frozen=True)
class Link:
    """The interface that has a node's cluster address: MTU in bytes, speed in Mbit/s, devices below it with their MTU.

    shared: ARP settings of all interfaces with an address in that subnet; empty where it is the only one.
    """

    interface: str | None = None
    mtu: int | None = None
    speed: int | None = None
    lower: dict[str, int | None] = field(default_factory=dict)
    shared: dict[str, dict[str, int | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Way:
    """The path of packets from a node to another, see module_utils/host/paths.py."""

    size: int = 0
    full: bool = False
    reached: bool = False
    rtt: float | None = None
    path_mtu: int | None = None
    source: str | None = None


@dataclass(frozen=True)
class NodeNetwork:
    """One node's view of the network; paths is None where it could not try them."""

    own_name: tuple[str, ...] = ()
    link: Link = field(default_factory=Link)
    paths: dict[str, Way] | None = None


@dataclass(frozen=True)
class Probe:
    """Of what module node_probe returned, the part about the network; network is None where it was not asked."""

    peers: dict[str, Peer] = field(default_factory=dict)
    network: NodeNetwork | None = None


@dataclass(frozen=True)
class Speed:
    """One direction of one pair, or of one rail of it, under load; code says why there is no figure."""

    source: str
    target: str
    port: int
    bits_per_second: float | None = None
    latency: float | None = None  # milliseconds, without load
    code: str = ""
    output: str = ""  # the tool's own words
    rail: str = ""  # adapter or adapter:port, for RDMA


@dataclass(frozen=True)
class Pair:
    """All that is known of the way from one node to another."""

    source: str
    target: str
    way: Way | None = None
    speed: Speed | None = None


@dataclass(frozen=True)
class ClusterLink:
    """A node's interface and its address."""

    node: str
    address: str
    link: Link = field(default_factory=Link)


@dataclass(frozen=True)
class Network:
    """verify.json's network. full_rounds: of a tournament of all nodes; rounds: those that were tried."""

    links: tuple[ClusterLink, ...] = ()
    pairs: tuple[Pair, ...] = ()
    rails: tuple[Speed, ...] = ()
    full_rounds: int = 0
    rounds: int = 0
