# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environments of a stack: what is installed in each, as wheels or with conda, and how Horovod is compiled there."""

from __future__ import annotations

from collections.abc import Mapping

from .model import Candidate, Problem, Slot
from .tables import Tables
from .versions import at_least


def environment(
    tables: Tables, problem: Problem, chosen: Mapping[Slot, Candidate], name: str, cuda_home: str | None
) -> dict:
    """One environment; cuda_home: where the host's toolkit lies, if it has one."""
    inside = {slot.component: one for slot, one in chosen.items() if slot.environment == name}
    torch = inside.get("pytorch")
    frameworks = {kind: one.version for kind, one in inside.items() if kind != "python"}
    accelerator = "cpu" if torch and torch.variant == "cpu" else problem.accelerator
    requirements = _requirements(problem, inside)
    return {
        "name": name,
        "python": inside["python"].version,
        "accelerator": accelerator,
        "requirements": requirements,
        "index": _index(tables, torch),
        "conda": _conda(tables, problem, inside, requirements),
        "frameworks": dict(sorted(frameworks.items())),
        "build": _build(tables, problem, inside, cuda_home) if "horovod" in inside else None,
    }


def _requirements(problem: Problem, inside: Mapping[str, Candidate]) -> list[str]:
    lines = []
    if "pytorch" in inside:
        lines += [f"torch=={inside['pytorch'].version}"]
    if "tensorflow" in inside:
        one = inside["tensorflow"]
        extra = "[and-cuda]" if one.row["and_cuda"] and problem.accelerator == "cuda" else ""
        lines += [f"tensorflow{extra}=={one.version}"]
    if "cupy" in inside:
        lines += [f"{inside['cupy'].variant}=={inside['cupy'].version}"]
    return [*lines, "numpy"]


def _index(tables: Tables, torch: Candidate | None) -> dict | None:
    if torch is None:
        return None
    return {"name": torch.variant, "url": tables.subjects["torch"]["index_url"] + torch.variant}


def _conda(tables: Tables, problem: Problem, inside: Mapping[str, Candidate], requirements: list[str]) -> dict:
    """The same environment for conda: its channels and specs, and the wheels that go on top (pip; the index is the same)."""
    channels, specs, wheels = [tables.subjects["conda"]["base_channel"]], [f"python={inside['python'].version}"], []
    row = _conda_row(tables, problem, inside.get("pytorch"))
    if row:
        torch = inside["pytorch"]
        channels = list(row["channels"])
        specs += [f"{row['package']}={torch.version}", row["builds"][torch.variant]]
    for line in requirements:
        if line == "numpy":
            specs.append(line)
        elif not (row and line.startswith("torch==")):
            wheels.append(line)
    return {"channels": channels, "specs": [*specs, "pip"], "wheels": wheels}


def _conda_row(tables: Tables, problem: Problem, torch: Candidate | None) -> Mapping | None:
    """How conda's channels carry a build of PyTorch; None where they do not."""
    for row in tables.rows("conda") if torch else ():
        between = at_least(torch.version, row["first"]) and at_least(row["last"], torch.version)
        if between and torch.variant in row["builds"] and problem.arch in row["arch"]:
            return row
    return None


def _build(tables: Tables, problem: Problem, inside: Mapping[str, Candidate], cuda_home: str | None) -> dict:
    """How Horovod is compiled once the frameworks are there."""
    known = tables.subjects["horovod"]["build_environment"]
    flags = {**known["all"], **known[problem.accelerator]}
    flags["HOROVOD_WITH_PYTORCH" if "pytorch" in inside else "HOROVOD_WITHOUT_PYTORCH"] = "1"
    flags["HOROVOD_WITH_TENSORFLOW" if "tensorflow" in inside else "HOROVOD_WITHOUT_TENSORFLOW"] = "1"
    if problem.accelerator == "cuda":
        capabilities = sorted({gpu.row["compute_capability"] for gpu in problem.gpus}, key=float)
        flags["HOROVOD_BUILD_CUDA_CC_LIST"] = ",".join(one.replace(".", "") for one in capabilities)
        flags.update({"HOROVOD_CUDA_HOME": cuda_home} if cuda_home else {})
    row = inside["horovod"].row
    return {
        "requirement": row["requirement"],
        "cxx_standard": row["cxx_std"],
        "environment": dict(sorted(flags.items())),
        "build_isolation": False,
    }
