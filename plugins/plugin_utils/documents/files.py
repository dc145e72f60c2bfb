# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replace files as a whole, so that a reader sees either the old or the new content, and judge names of files that a node gave."""

from __future__ import annotations

import errno
import glob
import json
import math
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

with suppress(ImportError):  # ansible-core depends on it; only ansible-test's import check runs without it
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion, Version

from ...module_utils.machine.sizes import free_words
from ..problems.problem import Problem

# PEP 427, without epochs.
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9_.]*[A-Za-z0-9])?"
_WHEEL = re.compile(
    rf"(?P<name>{_WORD})-(?P<version>[A-Za-z0-9][A-Za-z0-9_.+]*)(?:-[0-9][A-Za-z0-9_.]*)?(?:-{_WORD}){{3}}\.whl"
)
_LONGEST_NAME = 200
# Seconds after which no process is writing a file any more, also where another machine shares the directory.
_ON_ITS_WAY = 60


def is_wheel_of(file: object, name: str, version: str) -> bool:
    """Return True if FILE is the name of a wheel of this package and version, and nothing else."""
    found = _WHEEL.fullmatch(file) if isinstance(file, str) and len(file) <= _LONGEST_NAME else None
    try:
        return (
            found is not None
            and canonicalize_name(found["name"]) == canonicalize_name(name)
            and Version(found["version"].replace("_", "-")) == Version(version)
        )
    except InvalidVersion:
        return False


def replace_file(path: Path, content: bytes, durable: bool = True, mode: int | None = None) -> None:
    """Put the content in place at once. OSError where that fails; nothing is left behind then.

    durable: on the disk before it has its name, so that a power cut leaves the old or the new content. What a run left behind that was
    killed goes. mode: whatever the umask.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        if left.suffix[1:].isdigit() and _is_old(left):
            left.unlink(missing_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_bytes(content)
        if mode is not None:
            new.chmod(mode)
        if durable:
            with new.open("rb") as stream:
                os.fsync(stream.fileno())
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def read_text(path: Path) -> str | None:
    """Return the text of a file, None where there is none. OSError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def replace_text(path: Path, text: str) -> None:
    """Put the text in place at once, in a directory that is made where it is missing; a new file can be read by all users."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text.encode("utf-8"), mode=0o644)


def unwritten(path: Path, error: OSError) -> Problem:
    """Return the problem of a file that cannot be written, with what is free where its disk is full."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return Problem("controller_file", str(path), {"error": error.strerror})
    found = os.statvfs(path.parent)
    free = free_words(found.f_bavail * found.f_frsize)  # type: ignore[no-untyped-call]
    return Problem("controller_disk_full", str(path), {"free": free})


def _is_old(path: Path) -> bool:
    try:
        return path.stat().st_mtime < time.time() - _ON_ITS_WAY
    except FileNotFoundError:
        return False


def write_json(path: Path, value: object, durable: bool = True) -> None:
    """Replace the file by the value as JSON; NaN and infinite numbers, which JSON lacks, become "nan", "inf" and "-inf"."""
    text = json.dumps(_named(value), indent=1, allow_nan=False)
    replace_file(path, f"{text}\n".encode(), durable)


def _named(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _named(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_named(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
