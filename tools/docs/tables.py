# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything the resolver can plan, as Markdown tables, for docs/stack.md."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import TOLD
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import Tables

from ..supported import Scenario
from .markdown import table
from .proof import tested


def supported(tables: Tables, known: Mapping[str, Scenario]) -> str:
    """Everything the resolver can plan, as Markdown tables."""
    parts = [
        (
            "Operating systems",
            table(
                ("system", "Python", "for environments", "glibc", "driver from", "CUDA", "tested"),
                [(*_os(row), tested(row, known)) for row in tables.rows("distros")],
            ),
        ),
        ("GPUs", table(("model", "generation", "capability", "drivers", "modules"), map(_gpu, tables.rows("gpus")))),
    ]
    shown = [one for place in ("host", "framework") for one in TOLD if one.place == place]
    parts += [
        (one.overview.title, table(one.overview.columns, one.overview.lines(tables))) for one in shown if one.overview
    ]
    head = f"Tables of version {tables.version}.\n"
    return "\n".join([head, *(f"### {title}\n\n{body}\n" for title, body in parts)])


def _os(row: dict) -> tuple:
    cuda = f"{row['cuda_first'] or '?'} – {row.get('cuda_last', 'newest')}"
    state = " (end of life)" if row["status"] == "eol" else ""
    name, pythons, glibc = f"{row['id']} {row['version']}{state}", ", ".join(row["pythons"]), row["glibc"] or "?"
    return name, row["python"], pythons, glibc, ", ".join(row["drivers"]), cuda


def _gpu(row: dict) -> tuple:
    drivers = f"{row['min_driver'] or 'of CUDA ' + row['min_cuda']} – {row.get('max_driver_branch', 'newest')}"
    return row["model"], row["architecture"], row["compute_capability"], drivers, ", ".join(row["kernel_modules"])
