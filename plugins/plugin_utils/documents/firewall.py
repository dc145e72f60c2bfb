# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firewall of a node: fact gpu_firewall (module firewall_facts) as a value."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Firewalld:
    """unsaved: zones whose running rules a reload would lose; peers: what its set holds; None where it is not loaded."""

    active: bool = False
    version: str | None = None
    unsaved: tuple[str, ...] = ()
    peers: tuple[str, ...] | None = None
    policy: bool = False


@dataclass(frozen=True)
class Ufw:
    """active: whether its rules are loaded; door: whether they let pass what our table marked."""

    active: bool = False
    door: bool = False


@dataclass(frozen=True)
class Chain:
    """A chain that everything arriving passes, and that ends in a refusal; tool: whose it is, nft or iptables."""

    family: str
    table: str
    chain: str
    tool: str = "nft"
    door: bool = False

    @property
    def label(self) -> str:
        """Return its name as nft writes it."""
        return f"{self.family} {self.table} {self.chain}"


@dataclass(frozen=True)
class Nft:
    """digest, peers: of our table as it is loaded; None where it is not."""

    installed: bool = False
    digest: str | None = None
    peers: tuple[str, ...] | None = None
    closed: tuple[Chain, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """The range of ephemeral ports and what is taken out of it, in the kernel's words; before: the first change of ours."""

    port_range: str | None = None
    reserved: str | None = None
    reserved_before: str | None = None


@dataclass(frozen=True)
class FirewallNode:
    """The whole fact. interfaces: addresses by name; ssh_ports: those that SSH is served on."""

    recorded: bool = False
    firewalld: Firewalld = field(default_factory=Firewalld)
    ufw: Ufw = field(default_factory=Ufw)
    nft: Nft = field(default_factory=Nft)
    kernel: Kernel = field(default_factory=Kernel)
    interfaces: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ssh_ports: tuple[int, ...] = ()
    selinux: str | None = None
