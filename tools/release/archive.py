# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the archive of a commit so that everyone who builds it gets the same bytes."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from .source import Source


def build(checkout: Path, source: Source, directory: Path) -> Path:
    """Write the archive of the commit, and of nothing else that lies in the checkout; return its path."""
    with tempfile.TemporaryDirectory() as temporary:
        tree, built = Path(temporary) / "tree", Path(temporary) / "built"
        export(checkout, source.commit, tree)
        if source.version not in source.released:  # a rehearsal
            release_notes(tree, source)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment["LC_ALL"] = "C.UTF-8"  # Ansible runs in no other encoding
        command = [
            sys.executable,
            "-m",
            "ansible",
            "galaxy",
            "collection",
            "build",
            "--output-path",
            str(built),
            str(tree),
        ]
        subprocess.run(command, check=True, env=environment, cwd=temporary, stdout=subprocess.DEVNULL)
        content = normalize((built / f"{source.label}.tar.gz").read_bytes(), source.time)
    archive = directory / f"{source.label}.tar.gz"
    archive.write_bytes(content)
    return archive


def export(checkout: Path, commit: str, tree: Path) -> None:
    """Write the files of a commit."""
    command = ["git", "-C", str(checkout), "archive", "--format=tar", commit]
    files = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(files)) as opened:
        opened.extractall(tree, filter="data")


def release_notes(tree: Path, source: Source) -> None:
    """Turn the fragments of a tree into the release notes of its version, as make changelog does in the checkout."""
    day = datetime.fromtimestamp(source.time, UTC).date().isoformat()
    command = [sys.executable, "-m", "antsibull_changelog", "release", "--version", source.version, "--date", day]
    documenter = Path(sys.executable).with_name("ansible-doc")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    subprocess.run([*command, "--ansible-doc-bin", str(documenter)], check=True, cwd=tree, env=environment)


def normalize(archive: bytes, time: int) -> bytes:
    """Return the archive with one time for everything: ansible-galaxy records when it ran and when files were written."""
    written = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened, tarfile.open(fileobj=written, mode="w") as target:
        for member in opened:
            member.mtime = time
            member.pax_headers = {}
            target.addfile(member, opened.extractfile(member) if member.isfile() else None)
    return gzip.compress(written.getvalue(), mtime=time)


def manifest(archive: Path) -> bytes:
    """Return MANIFEST.json, which names the digests of all files: what ansible-galaxy wants a signature of."""
    with tarfile.open(archive) as opened:
        file = opened.extractfile("MANIFEST.json")
        assert file is not None
        return file.read()
