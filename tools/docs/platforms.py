# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The platforms that a role's metadata names for Galaxy: where a scenario is a full run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import Tables

from .proof import shown

# Galaxy has one platform for RHEL and all that is built like it.
ENTERPRISE_LINUX = "EL"
BLOCK = re.compile(r"^  platforms:.*\n(?:    .*\n)*", re.MULTILINE)


def metadata(tables: Tables, checkout: Path) -> dict[Path, str]:
    """Return every role's meta/main.yml with the platforms that are tested."""
    platforms = _platforms(tables)
    return {path: _with_platforms(path, platforms) for path in sorted(checkout.glob("roles/*/meta/main.yml"))}


def _platforms(tables: Tables) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in shown(tables):
        el = row["family"] == "el"
        versions = found.setdefault(ENTERPRISE_LINUX if el else tables.subjects["distros"]["names"][row["id"]], [])
        version = row["version"] if el else row["codename"]
        if version not in versions:
            versions.append(version)
    found[ENTERPRISE_LINUX].sort(key=int)
    return found


def _with_platforms(path: Path, platforms: Mapping[str, Iterable[str]]) -> str:
    lines = ["  platforms: # written by python -m tools.docs"]
    for name, versions in platforms.items():
        listed = ", ".join(f'"{one}"' if one.isdigit() else one for one in versions)
        lines += [f"    - name: {name}", f"      versions: [{listed}]"]
    text, count = BLOCK.subn("\n".join(lines) + "\n", path.read_text(encoding="utf-8"))
    if count != 1:
        raise ValueError(f"{path} has no platforms: write 'platforms: []' below galaxy_info, and this fills it")
    return text
