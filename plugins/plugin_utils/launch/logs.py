# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpack the logs that a node returned: the node chose names and sizes, and may have packed anything."""

from __future__ import annotations

import base64
import gzip
import io
import shutil
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, cast

from ..documents import values
from ..documents.values import Unfit

# Of one node: module training_unit returns the last mebibytes of each log.
MOST_BYTES = 2**30
MOST_FILES = 10_000
_PIECE = 1 << 18
LEFT_OUT = "left-out.txt"


def save_logs(stopped: Mapping, directory: Path) -> None:
    """Write the logs that module training_unit returned at the end of the run; what cannot be read or is too much is left out."""
    if not stopped.get("logs"):
        return
    directory.mkdir(parents=True, exist_ok=True)
    try:
        packed = io.BytesIO(base64.b64decode(stopped["logs"]))
        with gzip.open(packed) as stream, tarfile.open(fileobj=cast(IO[bytes], _Bounded(stream)), mode="r:") as tar:
            left_out = _save(tar, directory)
    except (ValueError, EOFError, RecursionError, gzip.BadGzipFile, tarfile.TarError, zlib.error):
        left_out = ["what follows, which is no archive of logs"]
    if left_out:
        (directory / LEFT_OUT).write_text("".join(f"{one}\n" for one in left_out), encoding="utf-8")


class _Bounded:
    """An archive that is read in small pieces only: tarfile reads headers into memory whose length the archive itself says."""

    def __init__(self, stream: gzip.GzipFile):
        self._stream = stream
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _PIECE or self.tell() > MOST_BYTES + MOST_FILES * _PIECE:
            raise ValueError(f"a header of {size} bytes")
        return self._stream.read(size)


def _save(tar: tarfile.TarFile, directory: Path) -> list[str]:
    """Return the names of what is left out. Headers are read one by one, so that a large member is skipped without a look at it."""
    left, left_out = MOST_BYTES, []
    for number, member in enumerate(tar):
        if number == MOST_FILES or member.size > left:
            left_out.append("what follows, which is more than logs have")
            break
        try:
            name = values.file_name(member.name)
        except Unfit:
            continue
        content = tar.extractfile(member) if member.isfile() else None
        if content:
            left -= member.size
            with (directory / name).open("wb") as target:
                shutil.copyfileobj(content, target)
    return left_out
