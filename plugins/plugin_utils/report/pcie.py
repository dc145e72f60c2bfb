# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show the PCIe paths between GPUs and adapters: a table of the pairs for nodes that are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...module_utils.machine.topology import natural_key
from ..documents.pcie import PciePair
from ..documents.verification import NodeVerification
from ..problems.phrases import enumeration, plural
from ..subjects.pcie.text import VERDICTS
from .tables import Cell

# What stands in a cell, and its shade. The words of pcie.text explain them below the table.
CELLS = {
    "direct": Cell("direct", 4),
    "root_complex": Cell("root", 3),
    "redirected": Cell("ACS", 2),
    "translated": Cell("IOMMU", 1),
    "unknown": Cell("unknown"),
}
# Pairs through the root complex are as the machine was built: their reasons are told by its topology.
UNREMARKABLE = ("direct", "root_complex")
MOST_REASONS = 5


@dataclass(frozen=True)
class PcieGroup:
    """Nodes whose pairs are alike. rows: a GPU and its cells, empty ones for itself and where NVLink joins two."""

    nodes: tuple[str, ...]
    text: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    legend: tuple[tuple[Cell, str], ...]
    reasons: tuple[str, ...]


def groups(nodes: Mapping[str, NodeVerification]) -> tuple[PcieGroup, ...]:
    """Return a group for each kind of node that PCIe was measured of, the largest first."""
    alike: dict[tuple[PciePair, ...], list[str]] = {}
    for name, node in nodes.items():
        if node.pcie_pairs:
            alike.setdefault(node.pcie_pairs, []).append(name)
    ordered = sorted(alike.items(), key=lambda item: (-len(item[1]), natural_key(item[1][0])))
    return tuple(_group(tuple(sorted(names, key=natural_key)), pairs) for pairs, names in ordered)


def _group(nodes: tuple[str, ...], pairs: tuple[PciePair, ...]) -> PcieGroup:
    cells = {(one.one, one.other): CELLS[_verdict(one)] for one in pairs}
    gpus = tuple(dict.fromkeys(one.one for one in pairs))
    # The last GPU of a node without adapters is the first of no pair.
    others = tuple(dict.fromkeys(one.other for one in pairs))
    columns = (*gpus, *(name for name in others if name not in gpus))
    rows = tuple(
        (gpu, tuple(cells.get((gpu, other)) or cells.get((other, gpu)) or Cell() for other in columns)) for gpu in gpus
    )
    found = Counter(map(_verdict, pairs))
    said = [f"{found[verdict]:,} {words}" for verdict, words in VERDICTS.items() if found[verdict]]
    legend = tuple((CELLS[verdict], words) for verdict, words in VERDICTS.items() if found[verdict])
    return PcieGroup(
        nodes, f"{plural(len(pairs), 'pair')}: {enumeration(said)}.", columns, rows, legend, _reasons(pairs)
    )


def _verdict(pair: PciePair) -> str:
    """Return a verdict that we know: what only newer writers know is unknown."""
    return pair.verdict if pair.verdict in CELLS else "unknown"


def _reasons(pairs: Iterable[PciePair]) -> tuple[str, ...]:
    """Return the reasons why pairs are not direct, the most frequent first."""
    hindered = (one for one in pairs if _verdict(one) not in UNREMARKABLE)
    found = Counter(reason for one in hindered for reason in one.reasons)
    said = [f"{reason}: {plural(count, 'pair')}" for reason, count in found.most_common(MOST_REASONS)]
    left = len(found) - len(said)
    return (*said, *((f"{plural(left, 'more reason')}, in verify.json",) if left else ()))
