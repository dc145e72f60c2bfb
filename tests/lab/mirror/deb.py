# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write .deb files. In Python, as a repository has thousands and dpkg-deb would be started for each of them."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile

from .model import Package
from .payload import Payload

FIELDS = (("Depends", "depends"), ("Provides", "provides"), ("Conflicts", "conflicts"), ("Replaces", "replaces"))


def control(package: Package) -> str:
    """Return the control file."""
    lines = [
        f"Package: {package.name}",
        f"Version: {package.epoch}:{package.version}" if package.epoch else f"Version: {package.version}",
        f"Architecture: {package.architecture}",
        "Section: multiverse/devel",
        "Priority: optional",
        "Maintainer: cudatools <cudatools@nvidia.com>",
        "Installed-Size: 1",
    ]
    lines += [f"{title}: {', '.join(values)}" for title, key in FIELDS if (values := getattr(package, key))]
    lines += ["Description: stub of the lab's mirror", ""]
    return "\n".join(lines)


def write(package: Package, payload: Payload) -> bytes:
    """Return the package as a file's content; the same every time."""
    members: dict[str, tuple[bytes | str, int]] = {"./control": (control(package).encode(), 0o644)}
    configuration = [path for path in payload.files if path.startswith("/etc/")]
    if configuration:
        members["./conffiles"] = ("".join(f"{path}\n" for path in sorted(configuration)).encode(), 0o644)
    for name, script in payload.scripts.items():
        members[f"./{name}"] = (f"#!/bin/sh\nset -e\n{script}\n".encode(), 0o755)
    libraries = any(".so." in path for path in payload.files)
    if libraries:
        members["./triggers"] = (b"activate-noawait ldconfig\n", 0o644)
    data = {
        f".{path}": (content, 0o755 if path in payload.programs else 0o644) for path, content in payload.files.items()
    }
    return b"!<arch>\n" + b"".join(
        _archive_member(name, content)
        for name, content in (
            ("debian-binary", b"2.0\n"),
            ("control.tar.gz", _tar(members)),
            ("data.tar.gz", _tar(data)),
        )
    )


def _archive_member(name: str, content: bytes) -> bytes:
    return (
        f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        + content
        + b"\n" * (len(content) % 2)
    )


def _tar(members: dict[str, tuple[bytes | str, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in _directories(members):
            info = tarfile.TarInfo(path)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(info)
        for path, (content, mode) in members.items():
            info = tarfile.TarInfo(path)
            if isinstance(content, str):
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, content, 0o777
                archive.addfile(info)
            else:
                info.size, info.mode = len(content), mode
                archive.addfile(info, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), 1, mtime=0)


def _directories(members: dict) -> list[str]:
    found = {"./"}
    for path in members:
        parts = path.split("/")[:-1]
        found.update("/".join(parts[: count + 1]) + "/" for count in range(len(parts)))
    return sorted(found)


def index_entry(package: Package, filename: str, content: bytes) -> str:
    """Return the paragraph of the Packages file."""
    sums = "".join(
        f"{title}: {hashlib.new(kind, content).hexdigest()}\n"
        for title, kind in (("MD5sum", "md5"), ("SHA1", "sha1"), ("SHA256", "sha256"))
    )
    head, description = control(package).rstrip("\n").rsplit("\n", 1)
    return f"{head}\nFilename: {filename}\nSize: {len(content)}\n{sums}{description}\n"
