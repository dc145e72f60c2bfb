# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replace files as a whole, so that a reader sees either the old or the new content."""

from __future__ import annotations

import json
import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Put the content in place at once. OSError where that fails; nothing is left behind then."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_bytes(content)
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: object) -> None:
    """Replace the file by the value as JSON."""
    replace_file(path, (json.dumps(value, indent=1) + "\n").encode("utf-8"))
