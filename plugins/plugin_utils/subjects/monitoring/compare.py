# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the monitoring of a node with what its variables ask for: the files of the role, and its services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...documents.comparison import Comparison, Remedy, Status, compared

COMPONENT, FILES = "monitoring", "files"


def compare_monitoring(
    services: Sequence[str], changed: Sequence[str], state: Mapping[str, Mapping[str, Any]]
) -> list[Comparison]:
    """Return a comparison for the files and one for each service; changed: files that differ; state: what systemd says."""
    seen = ", ".join(changed) or "as declared"
    return [
        compared(COMPONENT, FILES, "as declared", seen, not changed, Remedy.APPLY, "files"),
        *(_service(name, state.get(name) or {}) for name in services),
    ]


def _service(name: str, found: Mapping[str, Any]) -> Comparison:
    known = [found.get(key) for key in ("enabled", "active")]
    words = " and ".join(key if found.get(key) else f"not {key}" for key in ("enabled", "active"))
    agrees = None if None in known else all(known)
    return compared(COMPONENT, name, "enabled and active", words, agrees, Remedy.APPLY, "service")


def compare_unmeasured() -> list[Comparison]:
    """Return the one comparison of a node whose files were not looked at."""
    return [compared(COMPONENT, FILES, "as declared", None, None, Remedy.MEASURE, "files")]


def compare_unwanted(recorded: bool) -> list[Comparison]:
    """Return the differences of a node that is not to be watched: that it is."""
    if not recorded:
        return []
    return [Comparison(COMPONENT, FILES, "no exporters", "exporters", Status.UNWANTED, Remedy.APPLY, "files")]
