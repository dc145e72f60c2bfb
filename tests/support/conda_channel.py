# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build small packages in conda's format, and a channel of them that py-rattler indexes.

A package is a zip archive of metadata.json and two tar archives compressed with zstd, one of what is installed and one of its
description (https://docs.conda.io/projects/conda-build/en/stable/resources/package-spec.html). The compressed data is kept in raw
blocks, which needs no library (RFC 8878).
"""

import hashlib
import io
import json
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# What a package has in place of its prefix until it is installed.
PLACEHOLDER = "/opt/" + "placehold_" * 24
BLOCK = 1 << 17
# In a process of its own: threads that rattler 0.28.0 leaves running crash a Python that ends, now and then.
INDEX = """
import asyncio, os, sys
from rattler.index import index_fs
asyncio.run(index_fs(sys.argv[1], write_zst=False, write_shards=False, force=True))
os._exit(0)
"""


@dataclass(frozen=True)
class Package:
    """A package; files: {path: content}, where PLACEHOLDER stands in text for the prefix; links: {path: target}."""

    name: str
    version: str
    build: str = "0"
    depends: tuple[str, ...] = ()
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    executables: tuple[str, ...] = ()
    subdir: str = "linux-64"
    constrains: tuple[str, ...] = ()
    noarch: str | None = None  # "python": its files go into the site-packages of whatever Python there is

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.version}-{self.build}"

    def content(self, path: str) -> bytes:
        """Return what a file has, nothing for one that is not of this package."""
        found = self.files.get(path, b"")
        return found if isinstance(found, bytes) else found.encode()


def zstd(data: bytes) -> bytes:
    """Return a frame of zstd with uncompressed blocks (RFC 8878, 3.1.1)."""
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)] or [b""]
    frame = struct.pack("<IBQ", 0xFD2FB528, 0b11100000, len(data))
    for number, block in enumerate(blocks):
        frame += struct.pack("<I", len(block) << 3 | (number == len(blocks) - 1))[:3] + block
    return frame


def tar(members: dict[str, bytes], links: dict[str, str], executables=()) -> bytes:
    """Return a tar archive, the same every time."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path, content in sorted(members.items()):
            one = tarfile.TarInfo(path)
            one.size, one.mode = len(content), 0o755 if path in executables else 0o644
            one.mtime = 1_700_000_000
            archive.addfile(one, io.BytesIO(content))
        for path, target in sorted(links.items()):
            one = tarfile.TarInfo(path)
            one.type, one.linkname, one.mtime = tarfile.SYMTYPE, target, 1_700_000_000
            archive.addfile(one)
    return stream.getvalue()


def paths_of(package: Package) -> list[dict]:
    """Return the paths of info/paths.json."""
    found: list[dict] = []
    for path, given in sorted(package.files.items()):
        content = package.content(path)
        one = {"_path": path, "path_type": "hardlink", "sha256": digest(content), "size_in_bytes": len(content)}
        found.append(
            one
            | (
                {"file_mode": "text", "prefix_placeholder": PLACEHOLDER}
                if isinstance(given, str) and PLACEHOLDER in given
                else {}
            )
        )
    for path, target in sorted(package.links.items()):
        content = package.content(str(Path(path).parent / target))
        found.append({"_path": path, "path_type": "softlink", "sha256": digest(content), "size_in_bytes": len(content)})
    return found


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def archive(package: Package) -> bytes:
    """Return the package as a .conda file."""
    index = {
        "name": package.name, "version": package.version, "build": package.build, "build_number": 0,
        "depends": list(package.depends), "subdir": package.subdir, "platform": "linux", "arch": "x86_64",
        "timestamp": 1_700_000_000_000, "constrains": list(package.constrains),
    }  # fmt: skip
    if package.noarch:
        index["noarch"] = package.noarch
    info = {
        "info/index.json": index,
        "info/paths.json": {"paths": paths_of(package), "paths_version": 1},
        "info/about.json": {"summary": "a package of a test"},
    }
    description = {path: json.dumps(content).encode() for path, content in info.items()}
    description["info/files"] = "".join(f"{one['_path']}\n" for one in paths_of(package)).encode()
    content = {path: package.content(path) for path in package.files}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as file:
        file.writestr("metadata.json", '{"conda_pkg_format_version": 2}')
        file.writestr(f"pkg-{package.stem}.tar.zst", zstd(tar(content, package.links, package.executables)))
        file.writestr(f"info-{package.stem}.tar.zst", zstd(tar(description, {})))
    return stream.getvalue()


def build_channel(place: Path, packages) -> str:
    """Write the packages and the repodata of a channel; return its address."""
    for subdir in ("noarch", "linux-64"):
        (place / subdir).mkdir(parents=True, exist_ok=True)
    for package in packages:
        (place / package.subdir / f"{package.stem}.conda").write_bytes(archive(package))
    subprocess.run([sys.executable, "-c", INDEX, str(place)], check=True)
    return place.as_uri()
