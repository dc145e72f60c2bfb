# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From filled slots to the stack the roles carry out: the shape every other part of the collection reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from .advice import reasons, warnings
from .component import Component
from .components import COMPONENTS, component
from .environments import environment
from .model import Part, Problem, Solution
from .published import planned_rows
from .rows import Accelerator
from .slots import environment_names
from .solution import on_host
from .tables import Tables


def build_stack(tables: Tables, problem: Problem, chosen: Solution) -> Part:
    """Return the stack that a solution stands for."""
    host = on_host(chosen)
    stack: Part = {
        "table_version": tables.version,
        "os": _os(problem),
        "gpus": [
            {"model": gpu.model, "compute_capability": gpu.row["compute_capability"], "count": gpu.count}
            for gpu in problem.gpus
        ],
        "repository": None,
    }
    for one in COMPONENTS:
        stack.update(one.result(tables, problem, host))
    home = stack["cuda"]["home"] if stack["cuda"] else None
    environments = [environment(tables, problem, chosen, name, home) for name in environment_names(problem)]
    stack["python"] = environments[0]["python"] if environments else None
    stack["environments"] = environments
    if any(component(name).repository(problem, one) for name, one in host.items()):
        stack["repository"] = repository_result(tables, problem)
    stack["inputs"] = inputs_of(problem)
    stack["disk_mib"] = _disk(stack)
    stack["reasons"] = reasons(tables, problem, chosen)
    stack["warnings"] = warnings(tables, problem, chosen)
    stack["kind"] = kind(stack)
    published = planned_rows(tables, chosen)
    return {**stack, "published": published} if published else stack


def kind(stack: Mapping[str, Any]) -> str:
    """Return eight digits that are equal for hosts that get equal stacks."""
    parts = {
        name: value
        for name, value in stack.items()
        if name not in ("reasons", "warnings", "kind", "disk_mib", "inputs", "published")
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


def repository_result(tables: Tables, problem: Problem) -> Part:
    """Return NVIDIA's repository for the host: where it is and which key signs it."""
    subject, slug = tables.subjects["repositories"], problem.system["repository"]
    row = tables.known("repositories", slug=slug)
    directory = subject["arch_directories"][problem.machine]
    url = f"{subject['base_url']}{slug}/{directory}/"
    return {
        "slug": slug,
        "directory": directory,
        "package_manager": row["package_manager"],
        "url": url,
        "key_url": url + row["key"],
        "key_fingerprint": row["key_fingerprint"],
        "origin": subject["origin"],
        "label": subject["label"],
        "retired_keys": list(subject["retired_keys"]),
    }


def _disk(stack: Part) -> list[Part]:
    """Return what will be installed where and how much room it takes; ``part`` is for people."""
    found = [
        _room(one.name, None, "/", one, "cuda")
        for one in COMPONENTS
        if one.place == "host" and one.size and _takes_room(stack[one.name])
    ]
    for planned in stack["environments"]:
        for name in planned["frameworks"]:
            one, accelerator = component(name), planned["accelerator"]
            found.append(_room("environment", planned["name"], "/opt", one, accelerator))
    return found


def _room(part: str, name: str | None, directory: str, one: Component, accelerator: Accelerator) -> Part:
    mib = one.size[accelerator] if one.size else 0
    shown = f"{part} {name}" if name else part
    return {"part": shown, "component": part, "name": name, "directory": directory, "mib": mib}


def _takes_room(part: Part | None) -> bool:
    return part is not None and part.get("source") != "vendor"
