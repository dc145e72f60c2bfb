# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheels lab hosts install from, collected once on the build machine.

The sets of wheels.yml lie in one directory for each index that they come from (its view). PyTorch's CPU builds are looked
for, in order, in LAB_WHEELS (a directory), in pip's own find-links, and in PyTorch's CPU index: the plain index serves CUDA
builds of several GB.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

from . import paths
from .progress import LabError, say

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
DEFAULT = "demo"
# Every tag that a glibc of 2.28 or newer takes: the floor of PyTorch's wheels.
PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_24", "manylinux_2_17", "manylinux2014", "manylinux_2_12",
             "manylinux2010", "manylinux_2_5", "manylinux1", "linux")  # fmt: skip


@dataclass(frozen=True)
class Wheels:
    name: str
    view: str
    python: str
    requirements: list[str] = field(hash=False)
    sources: list[str] = field(default_factory=list, hash=False)

    @property
    def directory(self) -> Path:
        return paths.WHEELS / self.view

    @property
    def wanted(self) -> str:
        """Return the text that the stamp of a complete set has."""
        return "\n".join([self.python, *self.requirements, *self.sources])


@cache
def _table() -> dict[str, Wheels]:
    rows = yaml.safe_load(Path(__file__).with_name("wheels.yml").read_text(encoding="utf-8"))
    return {name: Wheels(name, **row) for name, row in rows.items()}


def get(name: str) -> Wheels:
    if name not in _table():
        raise LabError(f"the lab has no wheels {name!r}: use one of {', '.join(_table())}")
    return _table()[name]


def ensure(name: str) -> None:
    """Fill the directory of a set's view with the set."""
    wheels = get(name)
    stamp = wheels.directory / f".{name}"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wheels.wanted:
        return
    wheels.directory.mkdir(parents=True, exist_ok=True)
    large = "" if wheels.view == "cpu" else " (CUDA builds are several GB)"
    say(f"collecting wheels of Python {wheels.python}{large}: {', '.join(wheels.requirements + wheels.sources)}")
    before = _size(wheels.directory)
    if wheels.view == "cpu":
        for torch in (one for one in wheels.requirements if one.startswith("torch==")):
            _torch(wheels, torch)
    _download(wheels, *target(wheels.python), "--find-links", str(wheels.directory), *wheels.requirements)
    if wheels.sources:
        _download(wheels, "--no-deps", "--no-binary=:all:", "--no-build-isolation", *wheels.sources)
    say(f"{(_size(wheels.directory) - before) >> 20} MiB came")
    stamp.write_text(wheels.wanted, encoding="utf-8")


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def target(python: str) -> list[str]:
    """pip's options for a host with a Python (`3.10`)."""
    tag = "cp" + python.replace(".", "")
    return [
        "--only-binary=:all:", "--implementation=cp", f"--python-version={python}", f"--abi={tag}", "--abi=abi3",
        "--abi=none", *[f"--platform={platform}_x86_64" for platform in PLATFORMS],
    ]  # fmt: skip


def _torch(wheels: Wheels, torch: str) -> None:
    given = os.environ.get("LAB_WHEELS")
    tag = "cp" + wheels.python.replace(".", "")
    if list(wheels.directory.glob(f"torch-{torch.partition('==')[2]}*cpu*-{tag}-*.whl")):
        return
    sources = [["--no-index", "--find-links", given]] if given else []
    sources += [["--no-index"], ["--index-url", CPU_INDEX]]
    for source in sources:
        if _pip(wheels, *target(wheels.python), "--no-deps", *source, torch).returncode == 0:
            return
    looked = f"LAB_WHEELS ({given or 'not set'}), pip's find-links, {CPU_INDEX}"
    raise LabError(f"no CPU wheel for {torch}, looked in {looked}: download one and set LAB_WHEELS to its directory")


def _download(wheels: Wheels, *args: str) -> None:
    done = _pip(wheels, *args)
    if done.returncode:
        words = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise LabError(f"pip could not download the wheels {wheels.name}: {words[-1]}")


def _python_with_pip() -> str:
    """Return the Python of .venv where there is one: environments that uv makes, as those with another ansible-core, have no pip."""
    python = paths.CHECKOUT / ".venv" / "bin" / "python"
    return str(python) if python.exists() else sys.executable


def _pip(wheels: Wheels, *args: str) -> subprocess.CompletedProcess[str]:
    argv = [_python_with_pip(), "-m", "pip", "download", "--quiet", "--no-cache-dir", "--dest", str(wheels.directory)]
    return subprocess.run([*argv, *args], capture_output=True, text=True, check=False)


def local_directory() -> Path:
    """Return the directory that is served (created when missing)."""
    paths.WHEELS.mkdir(parents=True, exist_ok=True)
    return paths.WHEELS
