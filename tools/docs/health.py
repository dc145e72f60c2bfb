# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Format the checks of a GPU node and the remedy of each fault as Markdown tables, for docs/health.md."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_record import Check, Fault
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_table import CHECKS
from ansible_collections.allreduce.gpu.plugins.module_utils.health.metric_table import METRICS
from ansible_collections.allreduce.gpu.plugins.module_utils.health.xid_table import CONTEXT, ROWS

from .markdown import code, table


def health() -> str:
    """Return the tables: faults, checks, Xids, metrics."""
    faults = [row for check in CHECKS for row in _faults(check)]
    xids = [(", ".join(map(str, numbers)), code(name), source) for name, numbers, source in ROWS]
    xids += [(words, code(name), source) for name, dummy_number, words, dummy_gpus, source in CONTEXT]
    metrics = [
        (code(one.name), one.kind, one.meaning, ", ".join(map(code, one.labels)) or "–", one.source) for one in METRICS
    ]
    return "\n\n".join([
        "### Fault, verdict, action", table(("check", "fault", "verdict", "action", "class"), faults),
        "### Checks", table(("check", "about", "threshold", "source"), map(_check, CHECKS)),
        "### Xids", table(("number", "class", "source"), xids),
        "### Metrics", table(("metric", "kind", "value", "labels", "source"), metrics),
    ])  # fmt: skip


def _faults(check: Check) -> Iterator[tuple[str, ...]]:
    """Yield a row for the faults that have verdict and action in common."""
    alike: dict[tuple[str, str, str], list[Fault]] = {}
    for fault in check.faults:
        alike.setdefault((fault.severity, fault.action, fault.action_class), []).append(fault)
    for (severity, action, action_class), faults in alike.items():
        yield code(check.code), "<br>".join(one.meaning for one in faults), code(severity), action, code(action_class)


def _check(check: Check) -> tuple[str, ...]:
    return code(check.code), check.subject, ", ".join(map(_option, check.options.items())) or "–", check.source


def _option(item: tuple[str, dict]) -> str:
    name, option = item
    default = str(option["default"]).lower() if "default" in option else "not set"
    return f"{code(name)} ({option['type']}, {default})"
