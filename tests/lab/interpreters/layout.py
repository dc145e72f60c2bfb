# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The standalone layout: what an installed Python has, less tests, caches and Tk, with its libraries next to it.

python/bin/python3.10, python3, python
python/include/python3.10
python/lib/python3.10              the standard library; of site-packages only pip
python/lib/python3.10/lab          libpython and all libraries that are not glibc's
"""

from __future__ import annotations

import fnmatch
import shutil
from pathlib import Path

from . import elf

LIBRARIES = "lab"  # in the standard library's directory: a place of its own under any prefix
PREFIX = "/install"  # stands where the interpreter was built; uv replaces it
DIRECTORIES = ("__pycache__", "test", "tests", "idlelib", "tkinter", "turtledemo", "site-packages")
FILES = ("*.a", "*.o", "*.exe", "_tkinter.*", "_test*.so", "_ctypes_test*", "xxlimited*", "turtle.py", "nis.*")


def is_left_out(name: str, directory: bool) -> bool:
    return name in DIRECTORIES if directory else any(fnmatch.fnmatch(name, pattern) for pattern in FILES)


def _ignore(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if is_left_out(name, (Path(folder) / name).is_dir())]


def assemble(source: Path, version: str, root: Path, portable: bool = False) -> None:
    """Make the layout of Python VERSION (`3.10`) in ROOT; ``portable``: it runs on any host as it is."""
    name = f"python{version}"
    standard = root / "lib" / name
    shutil.copytree(source / "lib" / name, standard, symlinks=True, ignore=_ignore)
    shutil.copytree(source / "include" / name, root / "include" / name, symlinks=True)
    for package in source.glob(f"lib/{name}/site-packages/pip*"):
        shutil.copytree(package, standard / "site-packages" / package.name, ignore=_ignore)
    (root / "bin").mkdir()
    shutil.copy(source / "bin" / name, root / "bin" / name)
    for link in ("python3", "python"):
        (root / "bin" / link).symlink_to(name)
    _libraries(source, name, root, portable)
    for file in (*standard.glob("_sysconfigdata*.py"), *standard.glob("config-*/Makefile")):
        file.write_text(file.read_text(encoding="utf-8").replace(str(source), PREFIX), encoding="utf-8")


def _libraries(source: Path, name: str, root: Path, portable: bool) -> None:
    """libpython and what the interpreter and its modules need."""
    standard, program = root / "lib" / name, root / "bin" / name
    place = standard / LIBRARIES
    place.mkdir()
    found = {path.name: path for path in source.glob(f"lib/lib{name}.so.*")}
    modules = [path for path in standard.glob("lib-dynload/*") if elf.is_elf(path)]
    if not portable:
        installed = [source / "lib" / name / "lib-dynload" / module.name for module in modules]
        found |= elf.needed([source / "bin" / name, *installed])
    for soname, path in found.items():
        shutil.copy(path, place / soname)
    for soname in (soname for soname in found if soname.startswith("libpython")):
        (root / "lib" / soname).symlink_to(f"{name}/{LIBRARIES}/{soname}")
        (root / "lib" / f"lib{name}.so").symlink_to(soname)
    if not portable:
        libraries = list(place.iterdir())
        elf.strip([program, *modules, *libraries])
        elf.bind_program(program, f"$ORIGIN/../lib/{name}/{LIBRARIES}")
        elf.bind("$ORIGIN", libraries)
        elf.bind(f"$ORIGIN/../{LIBRARIES}", modules)
