# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The slow pairs and nodes of a cluster: those that differ from the others of the same cluster, by no absolute number.

A value differs where its modified z-score 0.6745 |x - median| / MAD is above 3.5 (B. Iglewicz and D. Hoaglin, "How to Detect and
Handle Outliers", 1993; NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.17), and where it is worse than the median by more
than 5 % (microsoft/superbenchmark's limit against a baseline): where nearly all values are equal the first says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

SCORE, CONSISTENCY, LEAST = 3.5, 0.6745, 0.05
NODES = 3  # fewer have no majority to compare one with


@dataclass(frozen=True)
class Sample:
    """A measurement from one node to another."""

    source: str
    target: str
    value: float


@dataclass(frozen=True)
class Population:
    """The middle of values, and the median of their distances from it."""

    median: float
    deviation: float


@dataclass(frozen=True)
class Judgement:
    """Nodes are slow where even their best way out (sources) or in (targets) is; pairs, where the others of both are not."""

    population: Population
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    pairs: tuple[Sample, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted({*self.sources, *self.targets}))


def population(values: Sequence[float]) -> Population:
    """Return the population of at least one value."""
    middle = median(values)
    return Population(middle, median(abs(value - middle) for value in values))


def differs(value: float, among: Population, higher_is_better: bool) -> bool:
    """Return True if a value is worse than a population by more than its scatter."""
    distance = (among.median - value) if higher_is_better else (value - among.median)
    return distance > LEAST * among.median and CONSISTENCY * distance > SCORE * among.deviation


def judge(samples: Iterable[Sample], higher_is_better: bool) -> Judgement | None:
    """Return the slow nodes; None where fewer than three nodes have been measured in two pairs each."""
    found = sorted(samples, key=lambda one: (one.source, one.target))
    sources, targets = _best(found, True, higher_is_better), _best(found, False, higher_is_better)
    if min(len(sources), len(targets)) < NODES:
        return None
    slow_sources, slow_targets = _slow(sources, higher_is_better), _slow(targets, higher_is_better)
    rest = [one for one in found if one.source not in slow_sources and one.target not in slow_targets]
    among = population([one.value for one in rest or found])
    pairs = tuple(one for one in rest if differs(one.value, among, higher_is_better))
    return Judgement(among, slow_sources, slow_targets, pairs)


def _best(samples: Iterable[Sample], outwards: bool, higher_is_better: bool) -> dict[str, float]:
    """Return the best value of each node with two or more: with one, it is not known which of the two was the slow one."""
    values: dict[str, list[float]] = {}
    for one in samples:
        values.setdefault(one.source if outwards else one.target, []).append(one.value)
    best = max if higher_is_better else min
    return {node: best(found) for node, found in values.items() if len(found) > 1}


def _slow(best: Mapping[str, float], higher_is_better: bool) -> tuple[str, ...]:
    among = population(list(best.values()))
    return tuple(sorted(node for node, value in best.items() if differs(value, among, higher_is_better)))
