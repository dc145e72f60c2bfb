# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what a node has of RDMA with what is declared, and judge how adapters reach the memory of GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...documents.comparison import Comparison, Remedy, Status, compared
from ...documents.rdma import Bridging, RdmaNode
from .chain import chains
from .gpudirect import DMA_BUF, DRIVER, PEERMEM, UNKNOWN, verdicts
from .plan import ets, fabric_interfaces
from .plan import port as desired_port
from .request import Request
from .text import describe

COMPONENT = "rdma"


def compare_rdma(wanted: Request, node: RdmaNode, nccl: Iterable[str], has_gpus: bool) -> list[Comparison]:
    """Return a comparison for everything that is declared."""
    return [
        _links(node),
        *(_gpudirect(node, nccl) if wanted.gpudirect and has_gpus else ()),
        *_names(wanted, node),
        *_ipoib(wanted, node),
        *_fabric(wanted, node),
        *_chains(wanted, node),
    ]


def compare_unmeasured() -> list[Comparison]:
    """Return the one comparison of a node that was not looked at."""
    return [compared(COMPONENT, "rdma", "as declared", None, None, Remedy.MEASURE, "link")]


def compare_unset(recorded: bool) -> list[Comparison]:
    """Return the differences of a node whose ports are not to be set up: that they still are."""
    return (
        [Comparison(COMPONENT, "rdma", "as it was", "set up", Status.UNWANTED, Remedy.APPLY, "fabric")]
        if recorded
        else []
    )


def _links(node: RdmaNode) -> Comparison:
    states = [
        f"{one.name}/{port.port} {port.state or 'unknown'} ({port.physical_state or 'unknown'})"
        for one in node.adapters
        for port in one.ports
    ]
    active = any(one.is_active for one in node.adapters)
    return compared(
        COMPONENT, "adapters", "an active port", ", ".join(states) or "no port", active, Remedy.LIBRARY, "link"
    )


def _gpudirect(node: RdmaNode, nccl: Iterable[str]) -> Iterator[Comparison]:
    for one in verdicts(node, nccl):
        subject = f"{one.adapter} to {', '.join(one.gpus)}" if one.gpus else one.adapter
        reasons = " ".join(describe(reason) for reason in one.reasons)
        agrees = None if one.path == UNKNOWN else one.path in (DMA_BUF, PEERMEM, DRIVER)
        state = f"{one.path} ({reasons})" if reasons else one.path
        yield compared(COMPONENT, subject, f"{DMA_BUF} or {PEERMEM}", state, agrees, Remedy.LIBRARY, "gpudirect")


def _names(wanted: Request, node: RdmaNode) -> Iterator[Comparison]:
    for one in node.adapters:
        guid = one.guid or ""
        name = wanted.fixed_names.get(guid.lower())
        if name:
            yield compared(COMPONENT, guid, name, one.name, one.name == name, Remedy.BOOT, "name")


def _ipoib(wanted: Request, node: RdmaNode) -> Iterator[Comparison]:
    for name, declared in wanted.ipoib.items():
        found = node.ipoib.get(name)
        for key, value in declared.items():
            state = str(getattr(found, key)) if found else None
            yield compared(COMPONENT, f"{key} of {name}", str(value), state, state == str(value), Remedy.APPLY, "ipoib")


def _fabric(wanted: Request, node: RdmaNode) -> Iterator[Comparison]:
    roce = wanted.roce
    if roce is None:
        return
    for name in fabric_interfaces(wanted, node):
        found = node.dcb.get(name) or Bridging()
        for dscp, priority in desired_port(name, roce)["apps"].items():
            state = None if found.apps is None else found.apps.get(dscp)
            yield _part(f"{name} DSCP {dscp}", f"priority {priority}", None if state is None else f"priority {state}")
        yield _part(f"{name} PFC", _listed(roce.pfc), None if found.pfc is None else _listed(found.pfc))
        if roce.ets:
            desired = ets(roce.ets)
            shown = _shares(found.ets.tsa, found.ets.bandwidth, found.ets.classes) if found.ets else None
            yield _part(f"{name} ETS", _shares(desired["tsa"], desired["bandwidth"], desired["classes"]), shown)


def _part(subject: str, desired: str, state: str | None) -> Comparison:
    return compared(COMPONENT, subject, desired, state, state == desired, Remedy.APPLY, "fabric")


def _listed(priorities: Iterable[int]) -> str:
    return " ".join(map(str, priorities)) or "none"


def _shares(tsa: Iterable[str], bandwidth: Iterable[int], classes: Iterable[int]) -> str:
    """Return text that is the same for classes that are served alike."""
    served = [f"{share} %" if one == "ets" else one for one, share in zip(tsa, bandwidth, strict=True)]
    return ", ".join(f"{priority}: {number} {served[number]}" for priority, number in enumerate(classes))


def _chains(wanted: Request, node: RdmaNode) -> Iterator[Comparison]:
    """Compare the way of NCCL's traffic; without a declared fabric none without losses is asked for."""
    declared = fabric_interfaces(wanted, node)
    for one in chains(node, wanted.traffic_class):
        if one.interface in declared:
            subject = f"{one.adapter} at {one.interface}"
            yield compared(COMPONENT, subject, "lossless", describe(one.way), one.is_whole, Remedy.LIBRARY, "chain")
