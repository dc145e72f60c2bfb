# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alerts of data/monitoring/alerts.yml, and the rules that Prometheus makes of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ...documents.parsing import parse

TABLE = Path(__file__).resolve().parents[4] / "data" / "monitoring" / "alerts.yml"
SEVERITIES = ("critical", "warning")
# Where a page for each alert stands, unless monitoring_runbooks says otherwise.
RUNBOOKS = "https://github.com/allreduce/gpu/blob/main/docs/runbooks"


@dataclass(frozen=True)
class Alert:
    """A row of the table; hold: how long the expression holds before the alert fires."""

    group: str
    alert: str
    expr: str
    hold: str
    severity: str
    summary: str
    source: str


@cache
def load() -> tuple[Alert, ...]:
    """Return the alerts in the order of the table; raise DocumentError for a row of the wrong shape."""
    rows: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["rows"]
    renamed = ({("hold" if key == "for" else key): value for key, value in row.items()} for row in rows)
    return tuple(parse(Alert, row, f"alerts[{number}]") for number, row in enumerate(renamed))


def rules(alerts: Iterable[Alert], runbooks: str = RUNBOOKS, skipped: Collection[str] = ()) -> dict[str, Any]:
    """Return the content of a rule file of Prometheus; skipped: names of alerts that are left out."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in alerts:
        if one.alert not in skipped:
            groups.setdefault(f"allreduce-{one.group}", []).append(rule(one, runbooks))
    return {"groups": [{"name": name, "rules": found} for name, found in groups.items()]}


def rule(one: Alert, runbooks: str = RUNBOOKS) -> dict[str, Any]:
    """Return one alerting rule of Prometheus."""
    return {
        "alert": one.alert,
        "expr": one.expr,
        "for": one.hold,
        "labels": {"severity": one.severity},
        "annotations": {"summary": one.summary, "runbook_url": f"{runbooks.rstrip('/')}/{one.alert}.md"},
    }
