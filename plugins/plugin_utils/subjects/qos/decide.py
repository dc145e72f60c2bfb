# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide which interfaces of a node are shaped, and which share training gets on each."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ....module_utils.host import tc
from ...documents.qos import Interface, QosNode
from ...problems.problem import Problem
from .ingress import MOST_FILTERS, filters
from .rates import rate_text
from .request import Request, share_problems, too_fast

TRAINING, DEFAULT = "10", "20"
MODULES = {"htb": "sch_htb", "ifb": "ifb"}
_is_ours: Callable[[object], bool] = tc.is_ours


@dataclass(frozen=True)
class Share:
    """A class: its minor number, guaranteed rate and ceiling in bit/s, and whose turn is first to borrow."""

    minor: str
    rate: int
    ceil: int
    prio: int


@dataclass(frozen=True)
class Shaping:
    """An interface and its classes, training first, everything else last; ifb: the device of its arriving packets, or ""."""

    name: str
    rate: int
    classes: tuple[Share, ...]
    leaf: str = ""
    ifb: str = ""
    filters: tuple[str, ...] = ()


def decide(wanted: Request, node: QosNode) -> tuple[tuple[Shaping, ...], list[Problem]]:
    """Return the shaping of each interface, or the problems why none is shaped."""
    found = [*_capability_problems(wanted, node), *_interface_problems(wanted, node)]
    found += [Problem("qos_unknown_peer", one) for one in wanted.unknown]
    found += [Problem("qos_no_cgroup", one) for one in wanted.cgroups if one not in node.cgroups]
    if wanted.ingress and len(filters(wanted)) > MOST_FILTERS:
        found.append(Problem("qos_many_filters", str(len(filters(wanted))), {"most": MOST_FILTERS}))
    if wanted.ingress and wanted.cgroups:
        found.append(Problem("qos_ingress_cgroups", ", ".join(wanted.cgroups)))
    for name in training_interfaces(wanted, node):
        found += _link_problems(wanted, name, node.interfaces.get(name) or Interface())
    return (() if found else shapings(wanted, node)), found


def shapings(wanted: Request, node: QosNode) -> tuple[Shaping, ...]:
    """Return the shaping of each interface; for a request and a node without problems."""
    leaf = "fq_codel" if node.kernel.get("fq_codel", _has_leaf(node)) else ""
    found = []
    for name in training_interfaces(wanted, node):
        link = _rate(wanted, node.interfaces[name]) or 0
        guarantee = wanted.guarantee.of(link)
        classes = (
            Share(TRAINING, guarantee, wanted.ceiling.of(link), 0),
            Share(DEFAULT, link - guarantee, wanted.default_ceiling.of(link), 1),
        )
        more = (ifb_name(name), tuple(filters(wanted))) if wanted.ingress else ("", ())
        found.append(Shaping(name, link, classes, leaf, *more))
    return tuple(found)


def ifb_name(name: str) -> str:
    """Return the name of the ifb device of an interface; the kernel takes 15 characters."""
    return f"ifb-{name}" if len(name) <= 11 else f"ifb-{hashlib.sha256(name.encode()).hexdigest()[:11]}"


def training_interfaces(wanted: Request, node: QosNode) -> tuple[str, ...]:
    """Return the interfaces that are named, or else the one that has the node's cluster address."""
    if wanted.interfaces:
        return wanted.interfaces
    if wanted.address is None:
        return ()
    mine = ipaddress.ip_address(wanted.address)
    held = {name: set(map(ipaddress.ip_address, one.addresses)) for name, one in node.interfaces.items()}
    return tuple(sorted(name for name, found in held.items() if mine in found))


def _has_leaf(node: QosNode) -> bool:
    """Tell by what is there, where the kernel was not tried, whether leaves are what we make of them."""
    return any(one.shaped and one.shaped.leaf == "fq_codel" for one in node.interfaces.values())


def _rate(wanted: Request, link: Interface) -> int | None:
    return wanted.rate or (link.speed * 10**6 if link.speed else None)


def _capability_problems(wanted: Request, node: QosNode) -> Iterator[Problem]:
    if not node.tc:
        yield Problem("qos_no_tc", "tc")
        return
    for capability in ("htb", "ifb") if wanted.ingress else ("htb",):
        if node.kernel.get(capability) is False:
            yield Problem("qos_no_module", MODULES[capability])


def _interface_problems(wanted: Request, node: QosNode) -> Iterator[Problem]:
    """Yield interfaces and addresses that the node does not have."""
    for name in wanted.interfaces:
        if name not in node.interfaces:
            yield Problem("qos_no_interface", name, {"interfaces": sorted(node.interfaces)})
    if not training_interfaces(wanted, node):
        yield Problem("qos_foreign_address", wanted.address or "gpu_cluster_address")


def _link_problems(wanted: Request, name: str, link: Interface) -> Iterator[Problem]:
    """Yield the reasons why an interface that is there cannot be shaped as wanted."""
    rate, shaped = _rate(wanted, link), link.shaped
    if rate is None:
        yield Problem("qos_unknown_rate", name)
        return
    if wanted.rate and link.speed and wanted.rate > link.speed * 10**6:
        detail = {"rate": rate_text(wanted.rate), "speed": rate_text(link.speed * 10**6)}
        yield Problem("qos_rate_above_link", name, detail)
    yield from too_fast(name, rate)
    yield from share_problems(wanted, rate)
    if shaped and shaped.root and not shaped.restorable and not is_ours(link):
        yield Problem("qos_foreign_qdisc", name, {"kind": shaped.root.kind, "handle": shaped.root.handle})
    if wanted.ingress and shaped and shaped.ingress and not (shaped.redirect or "").startswith("ifb-"):
        yield Problem("qos_foreign_ingress", name, {"kind": shaped.ingress})


def is_ours(link: Interface) -> bool:
    """Return True if an interface has classes of ours."""
    root = link.shaped.root if link.shaped else None
    return root is not None and _is_ours({"kind": root.kind, "handle": root.handle})
