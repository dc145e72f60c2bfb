# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shaping of a node's traffic: fact gpu_qos (module qos_facts) as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Qdisc:
    """A queueing discipline, as tc shows it."""

    kind: str
    handle: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class HtbClass:
    """A class; rates in bit/s, parent None for the root's own."""

    handle: str
    parent: str | None = None
    prio: int = 0
    rate: int | None = None
    ceil: int | None = None


@dataclass(frozen=True)
class Shaped:
    """The shaping of an interface. restorable: its root can be recreated; redirect: where arriving packets are sent to."""

    root: Qdisc | None = None
    restorable: bool = True
    ingress: str | None = None
    classes: tuple[HtbClass, ...] = ()
    leaf: str = ""
    redirect: str | None = None
    filters: int = 0


@dataclass(frozen=True)
class Interface:
    """Addresses, Mbit/s or None for what is not known, and what tc shows; None where it shows nothing."""

    addresses: tuple[str, ...] = ()
    speed: int | None = None
    shaped: Shaped | None = None


@dataclass(frozen=True)
class QosNode:
    """The whole fact. kernel: {capability: whether it is there}, None for what could not be tried."""

    recorded: bool = False
    tc: bool = False
    nft: bool = False
    interfaces: dict[str, Interface] = field(default_factory=dict)
    table: str | None = None
    cgroups: tuple[str, ...] = ()
    kernel: dict[str, bool | None] = field(default_factory=dict)
