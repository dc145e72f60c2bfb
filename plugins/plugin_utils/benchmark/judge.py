# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The slow GPUs and nodes: those that differ from their like in the same cluster, by no absolute number.

The measure is that of network/population.py: the median of all, and the median of their distances from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..documents.benchmark import Benchmark, Document, Measurement, Rank
from ..network.population import Population, differs, population

# With fewer, the median of the distances says nothing: of three, one that is slow is a third of its own measure.
MEMBERS = 4
PAIR = ("from", "to")


@dataclass(frozen=True)
class Member:
    """One GPU or one node with its figure. gpu: its number on the node, None where the figure is the node's."""

    node: str
    gpu: int | None
    value: float


@dataclass(frozen=True)
class Comparison:
    """The same figure of all that are alike. among: None where they are not compared; code then says why: too_few, no_gpu."""

    kind: str  # gpu | node
    name: str
    case: tuple[tuple[str, object], ...]
    unit: str
    device: str  # cuda | cpu
    model: str  # of the GPU, or of the processor
    among: Population | None
    members: tuple[Member, ...]
    slow: tuple[Member, ...] = ()
    code: str = ""


Key = tuple[str, str, str, str, str, str, bool]  # kind, name, case as JSON, unit, device, model, higher_is_better


def compare(benchmark: Benchmark) -> tuple[Comparison, ...]:
    """Compare what each node measured alone, in the order of the document."""
    members: dict[Key, list[Member]] = {}
    for run, document in benchmark.documents("node"):
        for key, member in _members(run.nodes[0], document):
            members.setdefault(key, []).append(member)
    return tuple(_comparison(key, found) for key, found in members.items())


def _members(node: str, document: Document) -> Iterator[tuple[Key, Member]]:
    ranks = {one.rank: one for one in document.ranks}
    models = " and ".join(sorted({one.name for one in document.ranks}))
    for found in document.measurements:
        value, rank = found.value, ranks.get(found.rank) if found.rank is not None else None
        if value is None:
            continue
        # A copy between two GPUs is as fast as what lies between them: its like is that of the same pair on another node.
        alone = rank is not None and not set(PAIR) & set(found.case)
        model = rank.name if alone and rank else f"{len(document.ranks)} x {models}"
        yield _key("gpu" if alone else "node", found, model), Member(node, _gpu(rank) if alone else None, value)


def _gpu(rank: Rank | None) -> int | None:
    return rank.local_rank if rank else None


def _key(kind: str, found: Measurement, model: str) -> Key:
    case = json.dumps(found.case, sort_keys=True)
    return kind, found.name, case, found.unit, found.device, model, found.higher_is_better


def _comparison(key: Key, members: list[Member]) -> Comparison:
    kind, name, text, unit, device, model, higher_is_better = key
    case = tuple(json.loads(text).items())
    # Processors do other work meanwhile, and are not what a benchmark of GPUs is about.
    code = "no_gpu" if device != "cuda" else "too_few" if len(members) < MEMBERS else ""
    if code:
        return Comparison(kind, name, case, unit, device, model, None, tuple(members), code=code)
    among = population([one.value for one in members])
    slow = tuple(one for one in members if differs(one.value, among, higher_is_better))
    return Comparison(kind, name, case, unit, device, model, among, tuple(members), slow)


def slow_nodes(found: Iterable[Comparison]) -> tuple[str, ...]:
    """Return the nodes that are slow themselves or have a slow GPU."""
    return tuple(sorted({member.node for one in found for member in one.slow}))
