# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a user's request to role slurm, and refuse invalid values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ...problems.problem import Problem
from ..options import as_list

# The defaults of the role's variables (a test compares).
DEFAULTS: dict[str, Any] = {
    "slurm_state": "absent",
    "slurm_directory": "/etc/slurm",
    "slurm_version": "",
    "slurm_autodetect": "none",
    "slurm_numa_node_as_socket": False,
    "slurm_node_name": "",
    "slurm_memory_margin": 5,
    "slurm_gpu_types": {},
    "slurm_features": [],
}
NODES, CONTROLLERS = "gpu_nodes", "controllers"
EXTERNAL = "external"
# A word of slurm.conf: nothing that ends one, and none of the signs of a request for features or GPUs (sbatch(1), --constraint, --gres).
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.+/-]{0,63}")
# A name that Slurm would take for something else (slurm.conf(5), NodeName), or that is no label of a host name.
_NAME = re.compile(r"(?!(?i:default|all)$)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
MOST_MARGIN = 50
# Of a variable: the form of its value, and an example.
_FORMS = {
    "slurm_directory": (r"/[A-Za-z0-9_./-]*[A-Za-z0-9_-]", "/etc/slurm"),
    "slurm_version": (r"(\d{2}\.\d{2}(\.\d+)?)?", "24.11"),
    "slurm_node_name": (rf"({_NAME.pattern})?", "gpu-1"),
    "slurm_memory_margin": (r"\d{1,2}", "5"),
}


@dataclass(frozen=True)
class Request:
    """The variables of a host. margin: percent of the memory that Slurm does not get; types: by NVML's names of GPUs."""

    external: bool = False
    directory: str = "/etc/slurm"
    version: str = ""
    autodetect: str = "none"
    numa_node_as_socket: bool = False
    margin: int = 5
    types: Mapping[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()


def request(variables: Mapping[str, Any]) -> Request:
    """Return what is asked for a host; for variables without problems."""
    mine = given(variables)
    return Request(
        external=is_external(variables),
        directory=str(mine["slurm_directory"]),
        version=str(mine["slurm_version"] or ""),
        autodetect=str(mine["slurm_autodetect"]),
        numa_node_as_socket=boolean(mine["slurm_numa_node_as_socket"], strict=False),
        margin=int(mine["slurm_memory_margin"]),
        types={str(name): str(kind) for name, kind in (mine["slurm_gpu_types"] or {}).items()},
        features=tuple(dict.fromkeys(map(str, as_list(mine["slurm_features"])))),
    )


def is_external(variables: Mapping[str, Any]) -> bool:
    """Return whether a host is of a cluster that somebody else runs."""
    return str(variables.get("slurm_state") or "absent") == EXTERNAL


def given(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of the role, those that are not set with its defaults."""
    found = {name: variables.get(name) for name in DEFAULTS}
    return {name: DEFAULTS[name] if value is None else value for name, value in found.items()}


def is_node_name(name: str) -> bool:
    """Return whether Slurm takes it for the name of one node."""
    return bool(_NAME.fullmatch(name))


def problems(variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with values that are set; no fact of a host is needed for it."""
    mine = given(variables)
    for name, (form, example) in _FORMS.items():
        if not re.fullmatch(form, str(mine[name])):
            yield Problem("slurm_form", name, {"value": mine[name], "example": example})
    if str(mine["slurm_memory_margin"]).isdigit() and int(mine["slurm_memory_margin"]) > MOST_MARGIN:
        yield Problem(
            "slurm_margin", "slurm_memory_margin", {"value": mine["slurm_memory_margin"], "most": MOST_MARGIN}
        )
    for one in map(str, as_list(mine["slurm_features"])):
        if not WORD.fullmatch(one):
            yield Problem("slurm_no_word", "slurm_features", {"value": one})
    for name, kind in (mine["slurm_gpu_types"] or {}).items():
        if not WORD.fullmatch(str(kind)) or str(kind) not in type_name(str(name)):
            yield Problem("slurm_no_type", str(kind), {"name": str(name), "reported": type_name(str(name))})


def type_name(name: str) -> str:
    """Return what Slurm's plugins make of NVML's name of a GPU (src/plugins/gpu/common/gpu_common.c, underscorify_tolower)."""
    return name.lower().replace(" ", "_")


def misfits(groups: Mapping[str, Iterable[str]], variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what the inventory lacks for a host that is of a cluster."""
    if is_external(variables) and not list(groups.get(CONTROLLERS) or ()):
        yield Problem("slurm_no_controller", CONTROLLERS)
