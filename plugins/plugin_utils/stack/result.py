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
from .model import SHARED, Part, Question, Solution
from .published import planned_rows
from .rows import Accelerator
from .slots import environment_names
from .solution import on_host
from .tables import Tables


def build_stack(tables: Tables, question: Question, chosen: Solution) -> Part:
    """Return the stack that a solution stands for."""
    host = on_host(chosen)
    stack: Part = {
        "table_version": tables.version,
        "os": _os(question),
        "gpus": [
            {"model": gpu.model, "compute_capability": gpu.row["compute_capability"], "count": gpu.count}
            for gpu in question.gpus
        ],
        "repository": None,
    }
    for one in COMPONENTS:
        stack.update(one.result(tables, question, host))
    home = stack["cuda"]["home"] if stack["cuda"] else None
    environments = [environment(tables, question, chosen, name, home) for name in environment_names(question)]
    stack["python"] = environments[0]["python"] if environments else None
    stack["environments"] = environments
    if any(component(name).repository(question, one) for name, one in host.items()):
        stack["repository"] = repository_result(tables, question)
    stack["inputs"] = inputs_of(question)
    stack["disk_mib"] = _disk(stack)
    stack["reasons"] = reasons(tables, question, chosen)
    stack["warnings"] = warnings(tables, question, chosen)
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


def inputs_of(question: Question) -> Part:
    """Return the inputs of the stack, as far as a user would call them the host or the request."""
    return {
        "os": f"{question.system['id']} {question.system['version']}",
        "arch": question.arch,
        "gpus": [f"{gpu.count} x {gpu.model}" for gpu in question.gpus],
        "request": dict(sorted(question.constraints.items())),
        "frameworks": list(question.frameworks),
        "environments": question.environments,
        **({"environment_name": question.environment_name} if question.environment_name != SHARED else {}),
        **({"driver_left": True} if question.owner else {}),
    }


def _os(question: Question) -> Part:
    row = question.system
    return {"id": row["id"], "version": row["version"], "arch": question.arch, "family": row["family"]}


def repository_result(tables: Tables, question: Question) -> Part:
    """Return NVIDIA's repository for the host: where it is and which key signs it."""
    subject, slug = tables.subjects["repositories"], question.system["repository"]
    row = tables.known("repositories", slug=slug)
    directory = subject["arch_directories"][question.machine]
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
    """Return the places where something will be installed and the room it takes; ``part`` is for people."""
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
