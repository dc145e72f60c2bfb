# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an interpreter of this machine needs to run on another host: its libraries, and this machine's glibc.

The interpreters were compiled here, so they need this machine's glibc or a newer one. Hosts have it, or a copy, below
ASIDE: image.py puts it there. A program finds its own libraries through its RPATH.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..progress import LabError

ASIDE = "/usr/libexec/lab"
LOADER = f"{ASIDE}/ld-linux-x86-64.so.2"
GLIBC = f"{ASIDE}/glibc"

# Parts of glibc that programs and wheels name. All that are loaded later are loaded with the program, from GLIBC where
# the host has a copy there: a library with a RUNPATH of its own would otherwise bring the host's older part.
LATER = ("libpthread.so.0", "libdl.so.2", "libutil.so.1", "librt.so.1", "libresolv.so.2")
PARTS = ("ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libmvec.so.1", "libanl.so.1", *LATER)
MODULES = ("libnss_files.so.2", "libnss_dns.so.2", "libnss_compat.so.2", "libnss_hesiod.so.2")


def run(*argv: str | Path) -> str:
    """Run a tool; its standard output. LabError with its last words when it fails."""
    try:
        done = subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise LabError(f"{argv[0]} not found: interpreters are packed with it, install it with apt") from None
    if done.returncode:
        raise LabError(f"{argv[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(files: Iterable[Path]) -> dict[str, Path]:
    """Libraries that the files need, by soname, without glibc's."""
    return parse_ldd(run("ldd", *files))


def parse_ldd(text: str) -> dict[str, Path]:
    """Return the libraries that `ldd` prints: `name => path (address)`; LabError for a library that this machine lacks."""
    found = {}
    for name, path in re.findall(r"^\s+(\S+) => (not found|\S+)", text, re.MULTILINE):
        if name in PARTS:
            continue
        if path == "not found":
            raise LabError(f"{name} not found: an interpreter of this machine needs it, install it")
        found[name] = Path(path)
    return found


def bind_program(path: Path, libraries: str) -> None:
    """Make a program use LOADER and the libraries in a directory (`$ORIGIN/../lib`)."""
    extra = [part for name in LATER for part in ("--add-needed", name)]
    run("patchelf", "--set-interpreter", LOADER, *extra, path)
    bind(libraries, [path])


def bind(libraries: str, files: Iterable[Path]) -> None:
    """Make libraries use those in a directory. RPATH, not RUNPATH: it counts for what they load in turn, too."""
    run("patchelf", "--force-rpath", "--set-rpath", f"{libraries}:{GLIBC}", *files)


def strip(files: Iterable[Path]) -> None:
    run("strip", "--strip-unneeded", *files)


def glibc_version() -> str:
    """This machine's, `2.36`."""
    return run("getconf", "GNU_LIBC_VERSION").split()[1]


def copy_glibc(target: Path) -> None:
    """Copy this machine's glibc into a directory."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    home = Path(re.findall(r"libc\.so\.6 => (\S+)", run("ldd", "/bin/sh"))[0]).resolve().parent
    for name in (*PARTS, *MODULES):
        if (home / name).exists():
            shutil.copy(home / name, target / name)
