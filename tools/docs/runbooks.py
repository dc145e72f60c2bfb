# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/runbooks/README.md: every alert, when it fires, and the page about it."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.alerts import Alert

from .markdown import code, table

TITLES = {
    "health": "Health of a node",
    "gpu": "GPUs",
    "fabric": "Fabric",
    "node": "The node around them",
    "monitoring": "The monitoring itself",
}
SEVERITIES = {"critical": "now", "warning": "next working day"}


def runbooks(alerts: Iterable[Alert]) -> str:
    """Return the tables, one for each group."""
    parts, found = [], list(alerts)
    for group, title in TITLES.items():
        rows = [
            (f"[{one.alert}]({one.alert}.md)", SEVERITIES[one.severity], code(one.expr.replace("|", "\\|")), held(one))
            for one in found
            if one.group == group
        ]
        parts.append(f"## {title}\n\n" + table(("alert", "act", "fires where", "for"), rows))
    return "\n\n".join(parts)


def held(one: Alert) -> str:
    """Return the time that the expression must hold, in words."""
    return "at once" if one.hold == "0s" else one.hold
