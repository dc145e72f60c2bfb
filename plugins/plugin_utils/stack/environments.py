# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environments of a stack: what is installed in each, as wheels or with conda."""

from __future__ import annotations

from collections.abc import Mapping

from .components.horovod.build import build
from .components.pytorch import Torch
from .interpreters import interpreter
from .model import AnyCandidate, Part, Problem, Solution
from .rows import CondaRow
from .solution import inside
from .tables import Tables
from .versions import at_least


def environment(tables: Tables, problem: Problem, chosen: Solution, name: str, cuda_home: str | None) -> Part:
    """Return one environment; cuda_home: where the host's toolkit lies, if it has one."""
    parts = inside(chosen, name)
    torch = parts.get("pytorch")
    frameworks = {
        slot.component: one.version
        for slot, one in chosen.items()
        if slot.environment == name and slot.component != "python"
    }
    accelerator = "cpu" if torch and torch.variant == "cpu" else problem.accelerator
    requirements = _requirements(tables, problem, parts)
    origin = interpreter(problem.system, parts["python"].version, parts["python"].row)
    return {
        "name": name,
        "python": parts["python"].version,
        "interpreter": origin,
        "accelerator": accelerator,
        "requirements": requirements,
        "index": _index(tables, torch),
        "libraries": _libraries(torch),
        "conda": _conda(tables, problem, parts, requirements),
        "frameworks": dict(sorted(frameworks.items())),
        "build": build(tables, problem, parts, origin["packages"], cuda_home) if "horovod" in parts else None,
    }


def _requirements(tables: Tables, problem: Problem, parts: Mapping[str, AnyCandidate]) -> list[str]:
    lines = []
    if "pytorch" in parts:
        lines += [f"torch=={parts['pytorch'].version}"]
    if "tensorflow" in parts:
        one = parts["tensorflow"]
        extra = "[and-cuda]" if one.row["and_cuda"] and problem.accelerator == "cuda" else ""
        lines += [f"tensorflow{extra}=={one.version}"]
    if "cupy" in parts:
        lines += [f"{parts['cupy'].variant}=={parts['cupy'].version}"]
    if "horovod" in parts:  # what it needs beside them; itself it has no wheels
        lines += tables.subjects["horovod"]["requirements"]
    return [*lines, "numpy"]


def _index(tables: Tables, torch: Torch | None) -> Part | None:
    if torch is None or torch.row["plain"]:
        return None
    return {"name": torch.variant, "url": tables.subjects["torch"]["index_url"] + torch.variant}


def _libraries(torch: Torch | None) -> Part | None:
    """The CUDA, cuDNN and NCCL that PyTorch's build brings, as far as they were verified."""
    if torch is None or torch.variant == "cpu":
        return None
    row, doubtful = torch.row, torch.row.get("unverified", ())
    known = {"cuda": row.get("cuda"), "cudnn": row.get("cudnn"), "nccl": row.get("nccl")}
    return {name: None if name in doubtful else value for name, value in known.items()}


def _conda(tables: Tables, problem: Problem, parts: Mapping[str, AnyCandidate], requirements: list[str]) -> Part:
    """The same environment for conda: its channels and specs, and the wheels that go on top (pip; the index is the same)."""
    channels, specs, wheels = [tables.subjects["conda"]["base_channel"]], [f"python={parts['python'].version}"], []
    torch = parts.get("pytorch")
    row = _conda_row(tables, problem, torch) if torch and not torch.row["plain"] else None
    if torch and row:
        channels = list(row["channels"])
        specs += [f"{row['package']}={torch.version}", row["builds"][torch.variant]]
    for line in requirements:
        if line == "numpy":
            specs.append(line)
        elif not (row and line.startswith("torch==")):
            wheels.append(line)
    return {"channels": channels, "specs": [*specs, "pip"], "wheels": wheels}


def _conda_row(tables: Tables, problem: Problem, torch: Torch) -> CondaRow | None:
    """Return how conda's channels carry a build of PyTorch; None where they do not."""
    for row in tables.rows("conda"):
        between = at_least(torch.version, row["first"]) and at_least(row["last"], torch.version)
        if between and torch.variant in row["builds"] and problem.arch in row["arch"]:
            return row
    return None
