# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the preconditions of `make gpu`: an environment with PyTorch, and a GPU that it sees."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

# What finds the package of the driver's library. An image can bring the driver without one, as NVIDIA's installer does.
LIBRARY = "libnvidia-ml.so.1"
OWNERS = (["dpkg-query", "--search", LIBRARY], ["rpm", "--query", "--whatprovides", f"{LIBRARY}()(64bit)"])
NVIDIA, DISPLAY = "0x10de", "0x03"  # PCI vendor, and the class of GPUs with and without outputs
# Runs in the environment: it has nothing else for certain.
PROBE = """
import json
found = {"torch": None, "cuda": None, "gpus": 0, "error": ""}
try:
    import torch
    found.update(torch=str(torch.__version__), cuda=torch.version.cuda, gpus=torch.cuda.device_count())
except Exception as error:
    found["error"] = type(error).__name__ + ": " + str(error).splitlines()[0]
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Seen:
    """The answer of the environment's interpreter."""

    torch: str | None = None
    cuda: str | None = None  # None: a build for processors
    gpus: int = 0
    error: str = ""


def refusal(prefix: str, without_gpu: bool = False, sys: Path = Path("/sys")) -> str | None:
    """Return one sentence that says why this machine cannot be accepted with this environment, or None."""
    if not prefix:
        return "make gpu needs an environment with PyTorch; name its prefix: make gpu ENV=/path/to/environment."
    python = Path(prefix) / "bin" / "python"
    if not Path(prefix).is_absolute() or not python.is_file():
        return f"ENV is {prefix}, but there is no {python}; set it to the absolute prefix of a Python environment with PyTorch."
    seen = ask(python)
    if seen.torch is None:
        return f"{python} cannot import PyTorch ({seen.error}); set ENV to an environment that can."
    return None if without_gpu or seen.gpus else _without(seen, prefix, len(gpus(sys)))


def ask(python: Path) -> Seen:
    """Return the result of the probe in an interpreter."""
    done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, check=False)
    try:
        return Seen(**json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        return Seen(error=f"it ended with status {done.returncode}")


def from_packages() -> bool:
    """Return True if a package manager of this machine installed the driver."""
    present = [command for command in OWNERS if shutil.which(command[0])]
    return any(subprocess.run(command, capture_output=True, check=False).returncode == 0 for command in present)


def gpus(sys: Path) -> list[str]:
    """Return the PCI addresses of NVIDIA's GPUs."""
    devices = sorted((sys / "bus" / "pci" / "devices").glob("*"))
    return [one.name for one in devices if _text(one / "vendor") == NVIDIA and _text(one / "class").startswith(DISPLAY)]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _without(seen: Seen, prefix: str, count: int) -> str:
    if not count:
        return "This machine has no NVIDIA GPU on its PCI bus; run make gpu on one that has."
    cards = f"{count} NVIDIA GPU{'s' * (count > 1)} on the PCI bus"
    if seen.cuda is None:
        return f"There {'are' if count > 1 else 'is'} {cards}, but PyTorch {seen.torch} in {prefix} is a build for processors; set ENV to one for CUDA."
    return f"PyTorch {seen.torch} in {prefix} sees none of the {cards}; look at nvidia-smi."
