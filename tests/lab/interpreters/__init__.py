# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real Python interpreters for lab hosts, packed as uv expects a standalone build, with a list that uv reads.

They are this machine's own (pyenv's), made to run on other hosts; where it has none, uv downloads a standalone build.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .. import paths
from ..progress import LabError, say
from . import elf, layout

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
ARCHIVES = paths.DOWNLOADS / "interpreters"
LIST = "downloads.json"
PLATFORM = "x86_64-unknown-linux-gnu-install_only.tar.gz"


@dataclass(frozen=True)
class Archive:
    """A packed interpreter. ``full``: `3.10.13`."""

    full: str
    path: Path

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def _installed(version: str) -> Path | None:
    """Return where this machine has a Python, the newest of its minor version."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [path for path in versions.glob(f"{version}.*") if path.name.rpartition(".")[2].isdigit()]
    return max(found, key=lambda path: int(path.name.rpartition(".")[2]), default=None)


def recipe(version: str) -> str:
    """Return a short digest of all that the archive of a version depends on."""
    state = hashlib.sha256(f"{version} {_installed(version) or 'uv'} {elf.glibc_version()}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        state.update(source.read_bytes())
    return state.hexdigest()[:12]


def ensure(version: str) -> Archive:
    """Return the archive of a version (`3.10`); make it when it is missing."""
    if version not in VERSIONS:
        raise LabError(f"the lab has no Python {version}: use one of {', '.join(VERSIONS)}")
    mark = recipe(version)
    found = next(ARCHIVES.glob(f"cpython-{version}.*-{mark}-{PLATFORM}"), None)
    if found is None:
        say(f"packing Python {version}")
        found = _pack(version, mark)
    return Archive(found.name.split("-")[1], found)


def _pack(version: str, mark: str) -> Path:
    ARCHIVES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".pack-", dir=ARCHIVES) as work:
        source = _installed(version) or _download(version, Path(work))
        full = subprocess.run(
            [source / "bin" / f"python{version}", "-c", "import platform; print(platform.python_version())"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        root = Path(work) / "python"
        root.mkdir()
        layout.assemble(source, version, root, portable=source.is_relative_to(work))
        part = Path(work) / "part"
        write_archive(root, part)
        for old in ARCHIVES.glob(f"cpython-{version}.*-{PLATFORM}"):
            old.unlink()
        return part.rename(ARCHIVES / f"cpython-{full}-{mark}-{PLATFORM}")


def _download(version: str, work: Path) -> Path:
    """Download a standalone build with uv."""
    beside = Path(sys.executable).with_name("uv")
    argv = [beside if beside.exists() else "uv", "python", "install", "--quiet", "--no-bin", "--no-config"]
    done = subprocess.run(
        [*map(str, argv), "--install-dir", str(work / "uv"), version], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LabError(
            f"this machine has no Python {version} and uv cannot download one ({' '.join(done.stderr.split())[-200:]}):"
            f" install one with pyenv"
        )
    return next(path for path in (work / "uv").glob(f"cpython-{version}.*") if not path.is_symlink())


def write_archive(root: Path, target: Path) -> None:
    """Write a .tar.gz of a directory, the same for the same content."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return info

    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for path in [root, *sorted(root.rglob("*"))]:
            name = Path(root.name) / path.relative_to(root)
            archive.add(path, str(name), recursive=False, filter=plain)


@cache
def files(version: str) -> dict[str, tuple[bytes | str, int]]:
    """Files below python/ by their path: content, or the target of a link, and mode."""
    found: dict[str, tuple[bytes | str, int]] = {}
    with tarfile.open(ensure(version).path) as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            if member.issym():
                found[path] = (member.linkname, 0o777)
            elif member.isfile():
                content = archive.extractfile(member)
                found[path] = (content.read() if content else b"", member.mode)
    return found


def download_list(archives: list[Archive], url: str) -> dict[str, dict]:
    """Return the list in the format of UV_PYTHON_DOWNLOADS_JSON_URL; URL is the directory of the archives."""
    rows = {}
    for archive in archives:
        major, minor, patch = map(int, archive.full.split("."))
        rows[f"cpython-{archive.full}-linux-x86_64-gnu"] = {
            "name": "cpython",
            "arch": {"family": "x86_64", "variant": None},
            "os": "linux",
            "libc": "gnu",
            "major": major,
            "minor": minor,
            "patch": patch,
            "prerelease": "",
            "url": f"{url}/{archive.path.name}",
            "sha256": archive.sha256,
            "variant": None,
            "build": None,
        }
    return rows


def publish(folder: Path, url: str, name: str = LIST, versions: tuple[str, ...] = VERSIONS) -> None:
    """Put the archives and a list NAME of them into a directory that is served at URL."""
    archives = [ensure(version) for version in versions]
    folder.mkdir(parents=True, exist_ok=True)
    for archive in archives:
        link = folder / archive.path.name
        if not link.exists():
            _link(archive.path, link)
    for old in set(folder.glob("*.tar.gz")) - {folder / archive.path.name for archive in archives}:
        old.unlink()
    text = json.dumps(download_list(archives, url), indent=2) + "\n"
    (folder / name).write_text(text, encoding="utf-8")


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy(source, target)
