# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The training of a benchmark over nodes that did the same: a row for all that trained alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median

from ..problems.phrases import plural, quantity
from .benchmark import PHASES, TrainingRow
from .folding import fold, label


@dataclass(frozen=True)
class TrainingLine:
    """Rows of nodes that trained alone in the same way, as one."""

    row: TrainingRow  # the medians of all
    on: str


def lines(rows: Iterable[TrainingRow]) -> list[TrainingLine]:
    """Fold the rows of nodes that trained alone; what several trained together stands for itself."""
    found = fold(rows, lambda row: (row.nodes[1:] and row.nodes, row.ranks, row.model, row.arm, row.how))
    return [_line(alike) for _key, alike in found]


def _line(found: list[TrainingRow]) -> TrainingLine:
    first, values = found[0], [row.images_per_second for row in found]
    ranks = plural(first.ranks, "rank")
    if len(found) == 1:
        return TrainingLine(first, f"{ranks} of {label(first.nodes)}")
    times = [row.times_plain for row in found if row.times_plain]
    phases = {name: [value for row in found if (value := dict(row.phases)[name]) is not None] for name in PHASES}
    row = replace(
        first,
        nodes=tuple(node for row in found for node in row.nodes),
        images_per_second=median(values),
        spread=f"{quantity(min(values))} to {quantity(max(values))}" if min(values) != max(values) else "",
        phases=tuple((name, median(known) if known else None) for name, known in phases.items()),
        times_plain=median(times) if times else None,
    )
    return TrainingLine(row, f"{ranks} on each of {label(row.nodes)}")
