# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rooms of the core form no cycle: a folder is a room; beside folders of its own, a file is one, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"


def room(path: Path) -> Path:
    """Return the folder of a file, or the file where folders lie beside it; an imported name may be either."""
    beside = any(one.is_dir() and one.name != "__pycache__" for one in path.parent.iterdir())
    return path if beside else path.parent


def imported(path: Path) -> Iterator[Path]:
    """Yield what a file imports from the core, inside its functions as well, which would hide a cycle."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):  # programs of launch/node import their neighbours by bare names
            base = path.parents[max(node.level, 1) - 1].joinpath(*(node.module or "").split("."))
            names = [base, *(base / one.name for one in node.names)]
        elif isinstance(node, ast.Import):
            names = [path.with_name(one.name) for one in node.names]
        else:
            continue
        yield from (file for one in names for file in (one.with_suffix(".py"), one / "__init__.py") if file.is_file())


@pytest.mark.parametrize("storey", ["plugin_utils", "module_utils"])
@pytest.mark.parametrize("unit", [room, Path], ids=["rooms", "files"])
def test_no_cycle(storey, unit):
    graph: dict[Path, set[Path]] = {}
    for path in (PLUGINS / storey).rglob("*.py"):
        others = {unit(one) for one in imported(path) if PLUGINS / storey in one.parents and one != path}
        graph.setdefault(unit(path), set()).update(others - {unit(path)})
    assert list(TopologicalSorter(graph).static_order())
