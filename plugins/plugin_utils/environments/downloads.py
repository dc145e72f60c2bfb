# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of standalone interpreters, in the format that uv takes. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

__all__ = ["unchecked_builds"]

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def unchecked_builds(text: str, python: str) -> list[str]:
    """Return the names of the builds of this Python in a list for which it has no SHA-256; uv takes those unchecked.

    A text that is no such list has none: uv says so itself. Source: UV_PYTHON_DOWNLOADS_JSON_URL in uv's documentation.
    """
    try:
        builds = json.loads(text)
    except ValueError:
        return []
    return sorted(
        name
        for name, build in (builds.items() if isinstance(builds, Mapping) else ())
        if isinstance(build, Mapping)
        and f"{build.get('major')}.{build.get('minor')}" == python
        and not _SHA256.fullmatch(str(build.get("sha256") or ""))
    )
