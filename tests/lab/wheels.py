# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheels lab hosts install from, collected once on the build machine.

The plain index serves the CUDA build of PyTorch (several GB), which no lab host can use. So its CPU
build is looked for, in order, in LAB_WHEELS (a directory), in pip's own find-links, and in PyTorch's
CPU index.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import paths
from .progress import LabError, say

# What a lab host runs: Debian 12's Python. manylinux_2_28 is the glibc floor of PyTorch's wheels.
TARGET = [
    "--only-binary=:all:", "--implementation=cp", "--python-version=3.11", "--abi=cp311", "--abi=abi3", "--abi=none",
    "--platform=manylinux_2_28_x86_64", "--platform=manylinux_2_27_x86_64", "--platform=manylinux_2_17_x86_64",
    "--platform=manylinux2014_x86_64",
]  # fmt: skip


def ensure(torch, index, others):
    """Fill the wheel directory with TORCH (`torch==2.13.0`), its CPU build from INDEX, and OTHERS."""
    paths.WHEELS.mkdir(parents=True, exist_ok=True)
    wanted = "\n".join([torch, *others])
    stamp = paths.WHEELS / ".complete"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    say(f"collecting wheels for the hosts: {', '.join([torch, *others])}")
    if not list(paths.WHEELS.glob(f"torch-{torch.partition('==')[2]}*cpu*.whl")):
        _torch(torch, index)
    _download("--find-links", paths.WHEELS, torch, *others)
    stamp.write_text(wanted, encoding="utf-8")


def _torch(torch, index):
    given = os.environ.get("LAB_WHEELS")
    sources = [["--no-index", "--find-links", given]] if given else []
    sources += [["--no-index"], ["--index-url", index]]
    for source in sources:
        if _pip("--no-deps", *source, torch).returncode == 0:
            return
    looked = f"LAB_WHEELS ({given or 'not set'}), pip's find-links, {index}"
    raise LabError(f"no CPU wheel for {torch}, looked in {looked}: download one and set LAB_WHEELS to its directory")


def _download(*args):
    done = _pip(*args)
    if done.returncode:
        raise LabError(f"pip could not download {' '.join(map(str, args[2:]))}: {done.stderr.strip().splitlines()[-1]}")


def _pip(*args):
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(paths.WHEELS), *TARGET]
    return subprocess.run([*argv, *map(str, args)], capture_output=True, text=True, check=False)


def local_directory():
    """The directory that is served (created when missing)."""
    Path(paths.WHEELS).mkdir(parents=True, exist_ok=True)
    return paths.WHEELS


def remove():
    """Forget all wheels."""
    shutil.rmtree(paths.WHEELS, ignore_errors=True)
