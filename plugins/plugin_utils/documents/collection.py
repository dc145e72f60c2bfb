# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of this collection, from the file that says it: MANIFEST.json where it is installed, galaxy.yml in a checkout."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def version(root: Path = ROOT) -> str:
    """Return the version; empty where neither file says it."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        return str(json.loads((root / "MANIFEST.json").read_text(encoding="utf-8"))["collection_info"]["version"])
    with suppress(OSError, ValueError):
        found = re.search(r"^version: *(\S+)", (root / "galaxy.yml").read_text(encoding="utf-8"), re.MULTILINE)
        return found[1] if found else ""
    return ""
