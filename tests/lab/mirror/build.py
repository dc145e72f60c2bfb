# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build repositories once; again only when their tables or this code changed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import interpreters, paths
from ..nvml import recording
from ..progress import LabError, say
from . import apt, catalogue, container_toolkit, dcgm, dnf, keys, stub_driver
from .model import Package
from .payload import Builder

HOME = paths.LAB / "mirror"
KEYS = HOME / "keys"
SERVED = HOME / "served"  # what the server shows: links into trees
FAULTS = HOME / "faults"
REPOSITORIES = "compute/cuda/repos"
SERVER = Path(__file__).with_name("server.py")


def key(name: str = "lab") -> Path:
    """File of a public key."""
    return KEYS / f"{name}.pub"


def fingerprint(name: str = "lab") -> str:
    return keys.fingerprint(KEYS, name)


def place(name: str) -> str:
    """Path of a repository on the server, after the view: an NVIDIA slug, an Ubuntu suite, or el8, el9, el10."""
    if name in catalogue.repositories():
        return f"{REPOSITORIES}/{name}/x86_64"
    return f"ubuntu/{name}" if name in apt.UBUNTU else f"el/{name}"


TOOLS = {
    "apt": {"gpg": "gnupg", "gcc": "gcc"},
    "dnf": {"gpg": "gnupg", "gcc": "gcc", "rpmbuild": "rpm", "rpmsign": "rpm", "createrepo_c": "createrepo-c"},
}


def _manager(name: str) -> str:
    known = catalogue.repositories()
    others = {**dict.fromkeys(apt.UBUNTU, "apt"), **dict.fromkeys(dnf.EL, "dnf")}
    if name not in known and name not in others:
        raise LabError(f"the mirror has no repository {name!r}: use one of {', '.join((*known, *others))}")
    return known[name]["manager"] if name in known else others[name]


def ensure(*names: str) -> None:
    """Build what is missing or out of date of the named repositories."""
    missing = {package for name in names for tool, package in TOOLS[_manager(name)].items() if not shutil.which(tool)}
    if missing:
        raise LabError(
            f"{', '.join(sorted(missing))} not found: the stub mirror is built with them, install them with apt"
        )
    for folder in (SERVED, FAULTS, HOME / "trees"):
        folder.mkdir(parents=True, exist_ok=True)
    with _lock("keys"):
        keys.ensure(KEYS)
    for name in names:
        with _lock(name):
            _ensure(name)


@contextmanager
def _lock(name: str) -> Iterator[None]:
    with open(HOME / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _others(name: str) -> list[Package]:
    """Packages of a stand-in for a distribution's archive."""
    if name in catalogue.repositories():
        return []
    return catalogue.archive(name) if name in apt.UBUNTU else catalogue.distribution(name)


def _digest(name: str) -> str:
    here = Path(__file__).parent
    sources = [
        *sorted(here.glob("*.py")),
        *sorted(here.glob("data/*.yml")),
        *recording.SOURCES,
        stub_driver.DAEMON,
        dcgm.PROGRAM,
        container_toolkit.PROGRAM,
    ]
    state = hashlib.sha256(name.encode() + fingerprint().encode())
    for version in sorted({package.python for package in _others(name)} - {""}):
        state.update(interpreters.recipe(version).encode())
    for source in sources:
        state.update(source.read_bytes())
    return state.hexdigest()[:12]


def _ensure(name: str) -> None:
    link, tree = SERVED / place(name), HOME / "trees" / f"{name}-{_digest(name)}"
    if not tree.exists():
        say(f"building the stub repository {name}")
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=HOME / "trees") as work:
            built = Path(work) / "tree"
            built.mkdir()
            _build(name, built)
            built.chmod(0o755)
            built.rename(tree)
    link.parent.mkdir(parents=True, exist_ok=True)
    fresh = link.with_name(f".{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(os.path.relpath(tree, link.parent))
    fresh.rename(link)
    for old in (HOME / "trees").glob(f"{name}-*"):
        if old != tree:
            shutil.rmtree(old, ignore_errors=True)


def _build(name: str, tree: Path) -> None:
    row, manager = catalogue.repositories().get(name), _manager(name)
    builder = Builder(manager, _libraries(tree.parent))
    if row:
        {"apt": apt, "dnf": dnf}[manager].build_nvidia(name, catalogue.packages(name), builder, tree, KEYS)
    elif manager == "apt":
        apt.build_archive(name, catalogue.archive(name), builder, tree, KEYS)
    else:
        dnf.build_distribution(name, catalogue.distribution(name), builder, tree, KEYS)


def _libraries(work: Path) -> dict[str, bytes]:
    """Build the simulated NVML, and an empty library."""
    empty = work / "empty.so"
    subprocess.run(["gcc", "-shared", "-nostdlib", "-x", "c", "-o", str(empty), "/dev/null"], check=True)
    return {"nvml": recording.build_library(work / "nvml.so").read_bytes(), "empty": empty.read_bytes()}
