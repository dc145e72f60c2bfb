# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user should know about a resolved stack: why it is so, and what to keep an eye on."""

from __future__ import annotations

from collections.abc import Callable

from .components.driver.row import Driver
from .components.python import Python
from .components.pytorch import Torch
from .components.tensorflow import Tensorflow
from .interpreters import offered
from .model import AnyCandidate, Problem, Solution
from .repository_libraries import Library
from .rows import Source
from .tables import Tables
from .unknowns import unknowns

# What says why a candidate was chosen, and what comes of it.
Say = Callable[[Tables, Problem, AnyCandidate], str]
Reason = dict[str, str]


def reasons(tables: Tables, problem: Problem, chosen: Solution) -> list[Reason]:
    """Return one sentence per component, in the order they are decided."""
    found: list[Reason] = []
    for slot, one in chosen.items():
        text = "" if one.absent else SAY[slot.component](tables, problem, one)
        if text:
            found.append({"component": slot.component, "text": text})
    if not problem.has_driver:
        found.insert(0, {"component": "driver", "text": "no driver: the host has no GPU and the request names none"})
    return found


def _asked(problem: Problem, name: str) -> str:
    return f"asked for as {problem.wishes[name]}" if name in problem.wishes else ""


def _driver(tables: Tables, problem: Problem, one: Driver) -> str:
    source: dict[Source, str] = {
        "vendor": "its vendor",
        "nvidia": "NVIDIA's repository",
        "distribution": "the distribution's own archive",
        "runfile": "NVIDIA's installer",
    }
    branch = one.row["branch"]
    if problem.owner:
        return f"installed, and left to {problem.owner.name}; runs CUDA {branch['cuda']} and older"
    why = _asked(problem, "driver") or f"newest {branch['status']} branch that fits"
    return f"{why}; from {source[one.row['source']]}, runs CUDA {branch['cuda']} and older"


def _pytorch(tables: Tables, problem: Problem, one: Torch) -> str:
    why = _asked(problem, "pytorch") or "newest release with verified wheels that fits"
    if one.variant == "cpu":
        return f"{why}; CPU build" + (", as the host has no GPU" if problem.accelerator == "cpu" else "")
    build = f"build {one.variant}" + (", which the general package index has," if one.row["plain"] else "")
    return f"{why}; {build} runs from driver {tables.driver_floor(one.row['cuda'])} on"


def _python(tables: Tables, problem: Problem, one: Python) -> str:
    os, origin = problem.system, one.row["source"]
    where = {
        "distribution": "from the distribution",
        "standalone": "a standalone build, installed by uv",
        "conda": "a package of conda, as python_env_manager says",
        "path": f"the interpreter {one.row['path']}",
    }[origin]
    if _asked(problem, "python"):
        return f"{_asked(problem, 'python')}; {where}"
    if origin == "distribution":
        own = os["python"] == one.version
        return "the system's own interpreter" if own else f"no wheels for the system's Python {os['python']}; {where}"
    short = origin == "standalone" and one.version not in os["pythons"]
    return f"no wheels for the distribution's Python {offered(os)}; {where}" if short else where


def _tensorflow(tables: Tables, problem: Problem, one: Tensorflow) -> str:
    libraries = (
        "brings its CUDA libraries as wheels" if one.row["and_cuda"] else f"uses the host's CUDA {one.row['cuda']}"
    )
    return f"{_asked(problem, 'tensorflow')}; {libraries if problem.accelerator == 'cuda' else 'on the CPU'}"


# What asks for each library of the host when the user does not.
USERS: dict[str, tuple[str, ...]] = {
    "cuda": ("horovod", "tensorflow", "cudnn"),
    "cudnn": ("tensorflow",),
    "nccl": ("horovod",),
}


def _simple(name: str) -> Say:
    def say(tables: Tables, problem: Problem, one: AnyCandidate) -> str:
        users = [user for user in USERS.get(name, ()) if user in problem.frameworks or user in problem.wishes]
        return _asked(problem, name) or f"needed by {' and '.join(users)}"

    return say


SAY: dict[str, Say] = {
    "driver": _driver, "pytorch": _pytorch, "python": _python, "tensorflow": _tensorflow, "cuda": _simple("cuda"),
    "cudnn": _simple("cudnn"), "nccl": _simple("nccl"), "cupy": _simple("cupy"), "horovod": _simple("horovod"),
}  # fmt: skip


def warnings(tables: Tables, problem: Problem, chosen: Solution) -> list[str]:
    """Return what to keep an eye on."""
    found = [*_os_warnings(problem), *_gpu_warnings(problem)]
    for slot, one in chosen.items():
        if slot.component == "driver":
            found += _driver_warnings(problem, one)
        if slot.component in ("cudnn", "nccl") and not one.absent:
            found += _repository_warnings(problem, one)
    return found + unknowns(problem, chosen)


def _os_warnings(problem: Problem) -> list[str]:
    row = problem.system
    if row["status"] == "eol":
        advice = f"; {row['advice']}" if row.get("advice") else ""
        return [f"{row['id']} {row['version']} has reached its end of life{advice}"]
    return []


def _gpu_warnings(problem: Problem) -> list[str]:
    found = [
        f"'{gpu.model}' can be {' or '.join(gpu.row['ambiguous'])}; the strictest of them was assumed"
        for gpu in problem.gpus
        if gpu.row.get("ambiguous")
    ]
    return found + [
        f"{gpu.model} has no row of its own in the tables; it was planned for as {gpu.row['architecture']} (chip "
        f"{gpu.row['chip']}, compute capability {gpu.row['compute_capability']})"
        for gpu in problem.gpus
        if gpu.row.get("chip")
    ]


def _driver_warnings(problem: Problem, one: Driver) -> list[str]:
    branch, found = one.row["branch"], []
    if problem.owner:
        return [
            f"the driver is left to {problem.owner.name}: neither it nor its repository, kernel modules and services "
            f"are touched; gpu_stack_take_charge: true changes that"
        ]
    if branch["status"] == "eol":
        when = f" ({branch['eol']})" if branch["eol"] else ""
        keeper = (
            "; the distribution's security support still updates its packages"
            if one.row["source"] == "distribution"
            else ""
        )
        found.append(f"driver branch {branch['branch']} has reached its end of life at NVIDIA{when}{keeper}")
    if one.row["source"] == "distribution" and "advice" in one.row["archive"]:
        found.append(
            f"driver {one.version} comes from the archive of {problem.system['id']} {problem.system['version']}: {one.row['archive']['advice']}"
        )
    if one.row.get("known") is False:
        found.append(
            f"driver {one.version} is not in the tables; it was taken as a release of the known branch {branch['branch']}"
        )
    return found


def _repository_warnings(problem: Problem, one: Library) -> list[str]:
    slug = problem.system["repository"]
    if slug in one.row["repositories"]:
        return []
    return [
        f"{one.component} {one.version} ({one.variant}) was not seen in the repository {slug}, only in {', '.join(one.row['repositories']) or 'others'}"
    ]
