# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From filled slots to the stack the roles carry out: the shape every other part of the collection reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from .advice import reasons, warnings
from .components.driver.packages import Package, driver_result, fabric_manager_result, imex_result, repository_result
from .environments import environment
from .model import AnyCandidate, Part, Problem, Solution
from .repository_libraries import Library
from .slots import environment_names
from .solution import on_host
from .tables import Tables
from .versions import at_least, major, minor


def build_stack(tables: Tables, problem: Problem, chosen: Solution) -> Part:
    """Return the stack that a solution stands for."""
    host = on_host(chosen)
    driver = driver_result(tables, problem, host["driver"]) if "driver" in host else None
    cuda = _cuda(tables, problem, host)
    home = cuda["home"] if cuda else None
    environments = [environment(tables, problem, chosen, name, home) for name in environment_names(problem)]
    stack: Part = {
        "table_version": tables.version,
        "os": _os(problem),
        "gpus": [
            {"model": gpu.model, "compute_capability": gpu.row["compute_capability"], "count": gpu.count}
            for gpu in problem.gpus
        ],
        "driver": driver,
        "fabric_manager": fabric_manager_result(tables, problem, host["driver"]) if "driver" in host else None,
        "repository": None,
        "cuda": cuda,
        "cudnn": _library(problem, host.get("cudnn"), _cudnn_packages),
        "nccl": _library(problem, host.get("nccl"), _nccl_packages),
        "python": environments[0]["python"] if environments else None,
        "environments": environments,
    }
    if "driver" in host and "imex" in problem.fabric:
        stack["imex"] = imex_result(tables, problem, host["driver"])
    # Its installer brings the driver alone.
    fabric = driver and driver["source"] == "runfile" and problem.fabric
    if any(name in host for name in ("cuda", "cudnn", "nccl")) or (driver and driver["source"] == "nvidia") or fabric:
        stack["repository"] = repository_result(tables, problem)
    stack["inputs"] = inputs_of(problem)
    stack["disk_mib"] = _disk(tables, stack)
    stack["reasons"] = reasons(tables, problem, chosen)
    stack["warnings"] = warnings(tables, problem, chosen)
    stack["kind"] = kind(stack)
    return stack


def kind(stack: Mapping[str, Any]) -> str:
    """Return eight digits that are equal for hosts that get equal stacks."""
    parts = {
        name: value
        for name, value in stack.items()
        if name not in ("reasons", "warnings", "kind", "disk_mib", "inputs")
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]


def inputs_of(problem: Problem) -> Part:
    """Return what the stack was resolved from, as far as a user would call it the host or the request."""
    return {
        "os": f"{problem.system['id']} {problem.system['version']}",
        "arch": problem.arch,
        "gpus": [f"{gpu.count} x {gpu.model}" for gpu in problem.gpus],
        "request": dict(sorted(problem.wishes.items())),
        "frameworks": list(problem.frameworks),
        "environments": problem.environments,
        **({"driver_left": True} if problem.owner else {}),
    }


def _os(problem: Problem) -> Part:
    row = problem.system
    return {"id": row["id"], "version": row["version"], "arch": problem.arch, "family": row["family"]}


def _cuda(tables: Tables, problem: Problem, host: Mapping[str, AnyCandidate]) -> Part | None:
    if "cuda" not in host:
        return None
    cuda, number = host["cuda"], minor(host["cuda"].version)
    dashed = number.replace(".", "-")
    packages: list[Package] = [{"name": f"cuda-toolkit-{dashed}", "version": f"{cuda.version}-1"}]
    cudart = cuda.row.get("cudart", {}).get(cuda.version)
    if cudart:
        # Left alone these float to the newest toolkit, and take /usr/local/cuda with them.
        common = (f"cuda-toolkit-{dashed}", f"cuda-toolkit-{major(number)}", "cuda-toolkit")
        packages += [{"name": f"{name}-config-common", "version": f"{cudart}-1"} for name in common]
    driver = host.get("driver")
    if driver and not at_least(driver.version, tables.driver_floor(cuda.version)):
        packages.append({"name": f"cuda-compat-{dashed}", "version": None})
    held = ["cuda-toolkit*-config-common", f"cuda-*-{dashed}", f"lib*-{dashed}"]
    return {"version": cuda.version, "packages": packages, "home": f"/usr/local/cuda-{number}", "held": held}


def _library(
    problem: Problem, chosen: Library | None, packages: Callable[[Problem, Library], list[Package]]
) -> Part | None:
    if chosen is None:
        return None
    return {"version": chosen.version, "cuda": chosen.row["cuda"], "packages": packages(problem, chosen)}


def _cudnn_packages(problem: Problem, cudnn: Library) -> list[Package]:
    dnf, build = problem.system["package_manager"] == "dnf", cudnn.row["cuda"]
    if major(cudnn.version) == "8":
        version = f"{cudnn.version}-1{'.' if dnf else '+'}cuda{build}"
        names = ("libcudnn8", "libcudnn8-devel" if dnf else "libcudnn8-dev")
    else:
        version = f"{cudnn.version}-1"
        names = (f"libcudnn9-cuda-{build}", f"libcudnn9-{'devel' if dnf else 'dev'}-cuda-{build}")
    return [{"name": name, "version": version} for name in names]


def _nccl_packages(problem: Problem, nccl: Library) -> list[Package]:
    names = ("libnccl", "libnccl-devel") if problem.system["package_manager"] == "dnf" else ("libnccl2", "libnccl-dev")
    return [{"name": name, "version": f"{nccl.version}-1+cuda{nccl.row['cuda']}"} for name in names]


def _disk(tables: Tables, stack: Part) -> list[Part]:
    """Return what will be installed where and how much room it takes; ``part`` is for people."""
    sizes: list[tuple[str, str | None, str]] = [
        (part, None, part) for part in ("driver", "cuda") if _takes_room(stack[part])
    ]
    for one in stack["environments"]:
        for name in one["frameworks"]:
            size = f"pytorch-{one['accelerator']}" if name == "pytorch" else name
            sizes.append(("environment", one["name"], size))
    found: list[Part] = []
    for component, name, size in sizes:
        row = tables.known("sizes", part=size)
        part = f"{component} {name}" if name else component
        found.append(
            {"part": part, "component": component, "name": name, "directory": row["directory"], "mib": row["mib"]}
        )
    return found


def _takes_room(part: Part | None) -> bool:
    return part is not None and part.get("source") != "vendor"
