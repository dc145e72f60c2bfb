# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of the report as values: rows that are equal on several nodes, and cells shaded by their value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...module_utils.machine.topology import natural_key
from .results import AS_PLANNED


@dataclass(frozen=True)
class Cell:
    """The text of a cell, its shade (0: none), and whether it is a fault."""

    text: str = ""
    shade: int = 0
    fault: bool = False


@dataclass(frozen=True)
class Row:
    """The nodes of which it is true, the texts of the columns, and a result where something was asked for."""

    nodes: tuple[str, ...]
    cells: tuple[str, ...]
    result: str = ""


@dataclass(frozen=True)
class Table:
    """columns: headings of the cells; the nodes come before them, the result after them where it is judged."""

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    judged: bool = False

    @property
    def differences(self) -> int:
        """Count the rows that are not as planned."""
        return sum(row.result != AS_PLANNED for row in self.rows) if self.judged else 0


Line = tuple[tuple[str, ...], str]  # cells, result


def folded(found: Iterable[tuple[str, Line]]) -> tuple[Row, ...]:
    """Return (node, line) as rows: equal lines are one row; those that are not as planned stand first, then as they came."""
    nodes: dict[Line, list[str]] = {}
    for node, line in found:
        nodes.setdefault(line, []).append(node)
    rows = [Row(tuple(sorted(names, key=natural_key)), *line) for line, names in nodes.items()]
    return tuple(sorted(rows, key=lambda row: row.result in ("", AS_PLANNED)))
