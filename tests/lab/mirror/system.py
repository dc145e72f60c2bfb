# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of the stand-in for a distribution's archive that an installed system has: its own Python."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from .. import interpreters
from . import catalogue, deb, pythons, rpm
from .model import Package
from .payload import Builder


def packages(distribution) -> list[Package]:
    """Return the packages that are installed in the image of a replica."""
    if not distribution.is_replica:
        return []
    wanted = pythons.installed(distribution.archive)
    found = catalogue.distribution if distribution.family == "el" else catalogue.archive
    return [package for package in found(distribution.archive) if package.name in wanted] if wanted else []


def recipe(distribution) -> str:
    """Return a digest of all that these packages depend on."""
    state = hashlib.sha256()
    for package in packages(distribution):
        state.update(repr(package).encode())
        if package.python:
            state.update(interpreters.recipe(package.python).encode())
    state.update(Path(pythons.__file__).with_name("stub_python.py").read_bytes())
    return state.hexdigest()


def write(distribution, folder: Path) -> None:
    """Write the package files into FOLDER/ARCHIVE."""
    found = packages(distribution)
    if not found:
        return
    place = folder / distribution.archive
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    if distribution.family == "el":
        with tempfile.TemporaryDirectory() as work:
            rpm.build(found, Builder("dnf", {}), Path(work) / "out")
            for file in (Path(work) / "out").iterdir():
                shutil.move(file, place / file.name)
    else:
        builder = Builder("apt", {})
        for package in found:
            (place / f"{package.name}.deb").write_bytes(deb.write(package, builder.build(package)))
