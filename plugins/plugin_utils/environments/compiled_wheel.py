# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a wheel of Horovod that a node compiled, before root installs it on others.

No lock has its SHA-256. So it may have nothing that takes effect before the training user imports it: no file next to its
package, and no program but its own.
"""

from __future__ import annotations

import hashlib
import re
import stat
import zipfile
import zlib
from pathlib import Path

from ..problems.problem import Problem

__all__ = ["sha256", "wheel_problem"]

# Bytes, of the file and of what is in it, and files; one with all frameworks has some ten megabytes, and less than a thousand files.
LARGEST, LARGEST_CONTENT, MOST = 1 << 30, 4 << 30, 20_000
PROGRAMS = "[console_scripts]\nhorovodrun = horovod.runner.launch:run_commandline"
# The end of an archive without a comment, and the mark of a second way to find its entries.
END, LOCATOR, END_SIZE, LOCATOR_SIZE = b"PK\5\6", b"PK\6\7", 22, 20


def wheel_problem(path: Path, version: str) -> Problem | None:
    """Return the reason why the file is not a wheel of this Horovod that others may install; None where it is one."""
    try:
        return _archive_problem(path, version)
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        return Problem("wheel_unreadable", path.name, {"reason": type(error).__name__})


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _archive_problem(path: Path, version: str) -> Problem | None:
    size = path.stat().st_size
    if size > LARGEST:
        return Problem("wheel_large", path.name, {"size": size})
    with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        entries = archive.infolist()
        stream.seek(max(0, size - END_SIZE - LOCATOR_SIZE))
        end = stream.read()
        # Every reader finds the same entries.
        plain = end[-END_SIZE:].startswith(END) and end[-2:] == b"\0\0" and not end.startswith(LOCATOR)
        names = [one.filename for one in entries]
        if (
            not plain
            or len(set(names)) < len(names)
            or len(names) > MOST
            or sum(one.file_size for one in entries) > LARGEST_CONTENT
        ):
            return Problem("wheel_unreadable", path.name, {"reason": "its entries"})
        for one in entries:
            if not _is_own(one, version):
                return Problem("wheel_foreign", path.name, {"member": ascii(one.filename[:80])})
        for one in entries:
            content = _content(archive, one)
            if one.filename.endswith("/entry_points.txt") and _lines(content) != PROGRAMS:
                return Problem("wheel_foreign", path.name, {"member": ascii(one.filename[:80])})
    return None


def _is_own(entry: zipfile.ZipInfo, version: str) -> bool:
    """Return True if an entry is a plain file, or a directory, of the package or of what describes it."""
    kind, directory = stat.S_IFMT(entry.external_attr >> 16), entry.filename.endswith("/")
    parts = entry.filename.rstrip("/").split("/")
    return (
        kind in (0, stat.S_IFDIR if directory else stat.S_IFREG)
        and not (entry.external_attr >> 16) & (stat.S_ISUID | stat.S_ISGID)
        and parts[0] in ("horovod", f"horovod-{version}.dist-info")
        and (len(parts) > 1 or directory)
        and not {"", ".", ".."} & set(parts)
        and re.fullmatch(r"[ -\[\]-~]+", entry.filename) is not None  # no backslash
        and entry.orig_filename == entry.filename
        and not entry.flag_bits & 1  # encrypted
    )


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Read an entry to its end, which compares its checksum; return its beginning."""
    with archive.open(entry) as stream:
        first = stream.read(1 << 16)
        while stream.read(1 << 20):
            pass
    return first


def _lines(content: bytes) -> str:
    """Return a text without what makes no difference."""
    lines = content.decode("utf-8", "replace").splitlines()
    return "\n".join(" = ".join(part.strip() for part in line.split("=")) for line in lines if line.strip())
