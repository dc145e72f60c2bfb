# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of the cluster as the report shows it: links, what roles set up, and every pair as a cell shaded by its value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from ...module_utils.machine.topology import natural_key
from ..documents.network import Network as Measured
from ..documents.network import Pair
from ..documents.verification import NodeVerification
from ..problems.phrases import plural, quantity
from .declared import tables
from .pcie import PcieGroup, groups
from .tables import Cell, Table

# Nodes in one table; of more, those with something to tell come first. A phone scrolls it, and paper has this width.
MOST = 24
# Shades by a value's share of the median: below the first is the palest one. In every cell stands the value itself.
SHADES = (0.5, 0.8, 0.95)


@dataclass(frozen=True)
class Link:
    """Interfaces that are alike, and the nodes that have them."""

    nodes: tuple[str, ...]
    interface: str
    mtu: str
    speed: str
    lower: str


@dataclass(frozen=True)
class Matrix:
    """One figure of every pair."""

    key: str
    title: str
    unit: str
    text: str  # what the table says, in words
    names: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]  # the way from the row's node to the column's

    @property
    def stands_out(self) -> bool:
        """Return True if a pair is faulty, or worse than the median by a fifth."""
        return any(cell.fault or 0 < cell.shade < len(SHADES) for row in self.rows for cell in row)


@dataclass(frozen=True)
class Network:
    """Return the section on the network; empty where nothing was examined."""

    links: tuple[Link, ...] = ()
    sentences: tuple[str, ...] = ()
    matrices: tuple[Matrix, ...] = ()
    tables: tuple[Table, ...] = ()
    pcie: tuple[PcieGroup, ...] = ()

    @property
    def is_known(self) -> bool:
        """Return True if there is anything to show."""
        return bool(self.links or self.tables or self.pcie)


def build(found: Measured, nodes: Mapping[str, NodeVerification] | None = None) -> Network:
    """Build the section of what verification left of the cluster and of its nodes."""
    matrices = (
        _matrix(found.pairs, "paths", "Round trip of packets of full size", "ms", _path, higher_is_better=False),
        _matrix(found.pairs, "bandwidth", "Bandwidth", "Gbit/s", _bandwidth, higher_is_better=True),
        _matrix(found.pairs, "latency", "Latency without load", "ms", _latency, higher_is_better=False),
    )
    shown = tuple(one for one in matrices if one)
    return Network(_links(found), tuple(_sentences(found)), shown, tables(nodes or {}), groups(nodes or {}))


def _links(found: Measured) -> tuple[Link, ...]:
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for one in found.links:
        link = one.link
        lower = ", ".join(f"{name} ({mtu or 'unknown'})" for name, mtu in sorted(link.lower.items()))
        speed = f"{link.speed / 1000:g} Gbit/s" if link.speed else ""
        key = (link.interface or "", str(link.mtu or ""), speed, lower)
        groups.setdefault(key, []).append(one.node)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(Link(tuple(sorted(nodes, key=natural_key)), *key) for key, nodes in ordered)


def _sentences(found: Measured) -> Iterable[str]:
    ways = [one.way for one in found.pairs if one.way]
    if ways:
        good = sum(way.full for way in ways)
        yield f"{good:,} of {len(ways):,} paths between nodes carry packets as large as the sender's interface sends."
    if 0 < found.rounds < found.full_rounds:
        yield f"Each node was tried with {found.rounds:,} of {plural(found.full_rounds, 'other node')}, spread over the cluster."
    speeds = [one.speed for one in found.pairs if one.speed]
    if speeds:
        measured = sum(not one.code for one in speeds)
        yield f"Bandwidth was measured on {measured:,} of {len(speeds):,} paths, one pair of each node at a time."
    if found.rails:
        measured, rails = sum(not one.code for one in found.rails), len({one.rail for one in found.rails})
        yield f"RDMA was measured in {measured:,} of {len(found.rails):,} directions of {plural(rails, 'rail')}."


Figure = Callable[[Pair], tuple[str, float | None]]


def _path(pair: Pair) -> tuple[str, float | None]:
    """Return the text to write and the value to shade by: None with a text is a fault."""
    way = pair.way
    if way is None:
        return "", None
    if way.full and way.rtt is not None:
        return quantity(way.rtt, 3), way.rtt
    if way.full:
        return "yes", 0.0
    return (f"not {way.size}" if way.reached else "no answer"), None


def _bandwidth(pair: Pair) -> tuple[str, float | None]:
    if pair.speed is None:
        return "", None
    value = pair.speed.bits_per_second
    return (quantity(value / 1e9, 3), value) if value is not None else (pair.speed.code.replace("_", " "), None)


def _latency(pair: Pair) -> tuple[str, float | None]:
    value = pair.speed.latency if pair.speed else None
    return ("", None) if value is None else (quantity(value, 3), value)


def _matrix(
    pairs: Iterable[Pair], key: str, title: str, unit: str, figure: Figure, higher_is_better: bool
) -> Matrix | None:
    found = {(one.source, one.target): figure(one) for one in pairs}
    found = {ends: said for ends, said in found.items() if said[0]}
    if not found:
        return None
    values = [value for _text, value in found.values() if value]
    middle = median(values) if values else 0.0
    cells = {ends: _cell(*said, middle, higher_is_better) for ends, said in found.items()}
    every = {node for ends in cells for node in ends}
    names = _shown(every, cells)
    rows = tuple(tuple(cells.get((source, target), Cell()) for target in names) for source in names)
    return Matrix(key, title, unit, _words(cells, values, unit, len(names), len(every)), names, rows)


def _cell(text: str, value: float | None, middle: float, higher_is_better: bool) -> Cell:
    if value is None:
        return Cell(text, 0, True)
    if not value or not middle:
        return Cell(text, len(SHADES) + 1)
    share = value / middle if higher_is_better else middle / value
    return Cell(text, 1 + sum(share >= limit for limit in SHADES))


def _shown(nodes: Iterable[str], cells: dict[tuple[str, str], Cell]) -> tuple[str, ...]:
    """Return the nodes that fit into a table: those with most faults and palest cells first, in the order of their names."""
    bad: dict[str, int] = {}
    for ends, cell in cells.items():
        for node in ends:
            bad[node] = (
                bad.get(node, 0) + (len(SHADES) + 1) * cell.fault + (0 if cell.fault else len(SHADES) + 1 - cell.shade)
            )
    chosen = sorted(nodes, key=lambda node: (-bad.get(node, 0), natural_key(node)))[:MOST]
    return tuple(sorted(chosen, key=natural_key))


def _words(cells: dict[tuple[str, str], Cell], values: list[float], unit: str, shown: int, total: int) -> str:
    faults = sum(cell.fault for cell in cells.values())
    scale = 1e9 if unit == "Gbit/s" else 1.0
    said = [f"{len(cells) - faults:,} of {len(cells):,} paths have a figure"]
    if values:
        low, middle, high = (quantity(one / scale, 3) for one in (min(values), median(values), max(values)))
        said.append(f"{low} to {high} {unit}, median {middle}")
    if shown < total:
        said.append(f"{shown} of {total:,} nodes shown, those that differ most first")
    return "; ".join(said) + "."
