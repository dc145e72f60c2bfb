# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Format what role tuning sets and refuses as Markdown tables, for docs/tuning.md."""

from __future__ import annotations

from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.tables import RefusedRow, SettingRow, Tables

from .markdown import code, table

CONDITIONS = {
    "always": "every node",
    "tcp": "training uses TCP",
    "rdma": "training uses RDMA",
    "shared_subnet": "interfaces share a subnet",
    "many_neighbours": "more than 500 hosts",
    "numa_bound": "ranks bound to NUMA nodes, or Grace",
}


def tuning(tables: Tables) -> str:
    """Return the three tables."""
    settings = table(("what", "value", "where", "why", "source"), [_setting(row) for row in tables.settings])
    arguments = table(
        ("argument", "why", "source"), [(code(row.argument), row.reason, row.source) for row in tables.arguments]
    )
    refused = table(("refused", "values", "why", "source"), [_refused(row) for row in tables.refused])
    return "\n\n".join([
        "### Settings", settings,
        "### Arguments of the kernel, where they are asked for", arguments,
        "### Refused by name", refused,
    ])  # fmt: skip


def _setting(row: SettingRow) -> tuple[str, ...]:
    value = f"at least {code(row.value)}" if row.floor else code(row.value)
    return code(row.subject), value, CONDITIONS[row.condition], row.reason, row.source


def _refused(row: RefusedRow) -> tuple[str, ...]:
    return _pattern(row.name), _pattern(row.value) if row.value else "all", row.reason, row.source


def _pattern(text: str) -> str:
    """Return a pattern as code; a bar would end the cell."""
    return code(text.replace("|", "\\|"))
