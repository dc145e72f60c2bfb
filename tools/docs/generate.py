# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every generated document, whole, by its path."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.alerts import load as load_alerts
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.tables import load as load_tuning

from ..supported import scenarios
from . import distributions, faults, health, overview, platforms, reference_systems, request, runbooks, tables, tuning
from .compatibility import compatibility
from .markdown import between, between_lines
from .picture import picture


def generated(checkout: Path) -> dict[Path, str]:
    """Return the generated content of docs/, the documentation of requests and the roles' metadata, by path."""
    rows, known = load(), scenarios(checkout)
    parts = {
        checkout / "docs" / "supported.md": overview.supported(rows, checkout),
        checkout / "docs" / "stack.md": tables.supported(rows, known),
    }
    found = {path: between(path.read_text(encoding="utf-8"), "supported", body) for path, body in parts.items()}
    for name, body in (("tuning", tuning.tuning(load_tuning())), ("health", health.health())):
        path = checkout / "docs" / f"{name}.md"
        found[path] = between(path.read_text(encoding="utf-8"), name, body)
    path = checkout / "docs" / "runbooks" / "README.md"
    found[path] = between(path.read_text(encoding="utf-8"), "runbooks", runbooks.runbooks(load_alerts()))
    path = checkout / "docs" / "cluster.md"
    found[path] = between(path.read_text(encoding="utf-8"), "roles", overview.roles(checkout))
    path = checkout / "docs" / "stack.md"
    found[path] = between(found[path], "request", request.sample())
    path = checkout / "roles" / "stack" / "meta" / "argument_specs.yml"
    found[path] = between_lines(path.read_text(encoding="utf-8"), "request", request.options())
    path = checkout / "plugins" / "modules" / "resolve_stack.py"
    text = between_lines(path.read_text(encoding="utf-8"), "request", request.item())
    found[path] = between_lines(text, "components", request.components())
    pages = distributions.pages(rows, known)
    found |= {checkout / "docs" / "distributions" / name: text for name, text in pages.items()}
    found |= {
        checkout / "docs" / "compatibility.md": compatibility(rows),
        checkout / "docs" / "compatibility.svg": picture(rows),
        checkout / "docs" / "faults.md": faults.faults(faults.load(checkout)),
        checkout / "docs" / "reference-systems.md": reference_systems.reference_systems(
            reference_systems.load(checkout)
        ),
    }
    return found | platforms.metadata(rows, checkout)
