# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replace files as a whole, so that a reader sees either the old or the new content, and judge names of files that a node gave."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path

with suppress(ImportError):  # ansible-core depends on it; only ansible-test's import check runs without it
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion, Version

# PEP 427, without epochs.
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9_.]*[A-Za-z0-9])?"
_WHEEL = re.compile(
    rf"(?P<name>{_WORD})-(?P<version>[A-Za-z0-9][A-Za-z0-9_.+]*)(?:-[0-9][A-Za-z0-9_.]*)?(?:-{_WORD}){{3}}\.whl"
)
_LONGEST_NAME = 200


def is_wheel_of(file: object, name: str, version: str) -> bool:
    """Return whether FILE is the name of a wheel of this package and version, and nothing else."""
    found = _WHEEL.fullmatch(file) if isinstance(file, str) and len(file) <= _LONGEST_NAME else None
    try:
        return (
            found is not None
            and canonicalize_name(found["name"]) == canonicalize_name(name)
            and Version(found["version"].replace("_", "-")) == Version(version)
        )
    except InvalidVersion:
        return False


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
