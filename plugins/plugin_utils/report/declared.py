# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of what roles set up for the network that are off by default: firewall, limits, shares, RDMA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ...module_utils.host.tc import MAJOR
from ..documents.comparison import Comparison
from ..documents.qos import QosNode
from ..documents.rdma import AdapterRecord, Path, RdmaPort
from ..documents.verification import NodeVerification
from ..problems.phrases import enumeration
from ..subjects.firewall import compare as firewall
from ..subjects.qos import compare as qos
from ..subjects.qos.decide import is_ours
from ..subjects.qos.rates import rate_text
from ..subjects.tuning import compare as tuning
from .results import RESULTS
from .tables import Line, Table, folded

COMPARED = ("What", "Declared", "Found")


def tables(nodes: Mapping[str, NodeVerification]) -> tuple[Table, ...]:
    """Return the tables that have a row; a node without a role's facts is in none of that role's."""
    found = (
        _table(nodes, "firewall", "Firewall", COMPARED, _firewall, judged=True),
        _table(nodes, "limits", "Limits of processes", COMPARED, _limits, judged=True),
        _table(nodes, "shares", "Shares of links", ("Interface", "Class", "Guarantee", "Ceiling"), _shares),
        _table(nodes, "rdma", "RDMA", ("Adapter", "Ports", "GPUs' memory", "Traffic class of NCCL"), _adapters),
    )
    return tuple(one for one in found if one.rows)


def _table(
    nodes: Mapping[str, NodeVerification],
    key: str,
    title: str,
    columns: tuple[str, ...],
    lines: Callable[[NodeVerification], Iterator[Line]],
    judged: bool = False,
) -> Table:
    return Table(key, title, columns, folded((name, line) for name in nodes for line in lines(nodes[name])), judged)


def _firewall(node: NodeVerification) -> Iterator[Line]:
    return (_compared(one) for one in node.comparisons if one.component == firewall.COMPONENT)


def _limits(node: NodeVerification) -> Iterator[Line]:
    found = (one for one in node.comparisons if one.component == tuning.COMPONENT)
    return (_compared(one) for one in found if one.kind == tuning.LIMIT)


def _compared(one: Comparison) -> Line:
    return (one.subject, one.desired, one.observed), RESULTS[one.status]


def _shares(node: NodeVerification) -> Iterator[Line]:
    """Yield the classes that the kernel has on each interface that role qos shaped."""
    for name, link in sorted((node.gpu_qos or QosNode()).interfaces.items()):
        classes = {one.handle: one for one in link.shaped.classes} if link.shaped and is_ours(link) else {}
        for minor, words in qos.NAMES.items():
            one = classes.get(MAJOR + minor)
            if one:
                yield (name, words, _rate(one.rate), _rate(one.ceil)), ""


def _rate(value: int | None) -> str:
    return rate_text(value) if value else ""


def _adapters(node: NodeVerification) -> Iterator[Line]:
    for one in node.rdma_adapters:
        ports, chains = "; ".join(map(_port, one.ports)), " ".join(chain.sentence for chain in one.chains)
        yield (one.name, ports, _memory(one), chains), ""


def _port(one: RdmaPort) -> str:
    rate = f"{one.rate_gbps:g} Gbit/s" if one.rate_gbps else None
    return ", ".join(filter(None, (one.link_layer, one.state, rate, enumeration(one.netdevs))))


def _memory(adapter: AdapterRecord) -> str:
    """Return the path by which NCCL reaches the GPUs' memory; GPUs are named where they differ."""
    several = len(adapter.gpudirect) > 1
    return " ".join(_path(one, several) for one in adapter.gpudirect)


def _path(one: Path, named: bool) -> str:
    words = f"{', '.join(one.gpus)}: {one.path}" if named else one.path
    return " ".join((f"{words}.", *one.reasons))
