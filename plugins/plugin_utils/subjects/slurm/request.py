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
from . import limits, switches

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
    "slurm_switch": "",
    "slurm_cluster_name": "cluster",
    "slurm_partition": "gpu",
    "slurm_cgroups": True,
    "slurm_extra_lines": [],
    "slurm_qos": [],
    "slurm_accounts": [],
    "slurm_health": True,
    "slurm_delete_accounting": False,
}
NODES, CONTROLLERS, LOGIN_NODES = "gpu_nodes", "controllers", "login_nodes"
EXTERNAL, PRESENT = "external", "present"
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
    "slurm_switch": (switches.FORM, "leaf3, or row1/leaf3"),
    # slurm.conf(5): lower case, since it is also the name of tables.
    "slurm_cluster_name": (r"[a-z][a-z0-9_]{0,39}", "cluster"),
    "slurm_partition": (r"(?!(?i:default|all)$)[A-Za-z][A-Za-z0-9_-]{0,39}", "gpu"),
}
# A line of slurm.conf that a user adds: one key, printable, nothing that continues or includes.
_LINE = re.compile(r"([A-Za-z]+)=[^\x00-\x1f\x7f#]*[^\x00-\x20\x7f#\\]")
# Keys of slurm.conf that the role writes or leaves out for a reason.
_WRITTEN = """
AccountingStorageExternalHost AccountingStorageHost AccountingStoragePort AccountingStorageTRES AccountingStorageType AuthType ClusterName
DefMemPerCPU GresTypes Include JobAcctGatherType NodeName NodeSet PrologFlags ProctrackType PropagateResourceLimits
PropagateResourceLimitsExcept SelectType SelectTypeParameters SlurmctldAddr SlurmctldHost SlurmctldLogFile SlurmctldParameters
SlurmctldPidFile SlurmctldPort SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdPort SlurmdSpoolDir SlurmdUser SlurmUser SrunPortRange
StateSaveLocation TaskPlugin
"""
WRITTEN = frozenset(_WRITTEN.lower().split())


@dataclass(frozen=True)
class Request:
    """The variables of a host. margin: percent of the memory that Slurm does not get; types: by NVML's names of GPUs."""

    directory: str = "/etc/slurm"
    version: str = ""
    autodetect: str = "none"
    node_name: str = ""
    numa_node_as_socket: bool = False
    margin: int = 5
    types: Mapping[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    switch: str = ""
    cluster: str = "cluster"
    partition: str = "gpu"
    cgroups: bool = True
    extra: tuple[str, ...] = ()
    qos: limits.Entries = ()
    accounts: limits.Entries = ()
    delete_accounting: bool = False


def request(variables: Mapping[str, Any]) -> Request:
    """Return the request of a host; for variables without problems."""
    mine = given(variables)
    return Request(
        directory=str(mine["slurm_directory"]),
        version=str(mine["slurm_version"] or ""),
        node_name=str(mine["slurm_node_name"] or ""),
        autodetect=str(mine["slurm_autodetect"]),
        numa_node_as_socket=boolean(mine["slurm_numa_node_as_socket"], strict=False),
        margin=int(mine["slurm_memory_margin"]),
        types={str(name): str(kind) for name, kind in (mine["slurm_gpu_types"] or {}).items()},
        features=tuple(dict.fromkeys(map(str, as_list(mine["slurm_features"])))),
        switch=str(mine["slurm_switch"]),
        cluster=str(mine["slurm_cluster_name"]),
        partition=str(mine["slurm_partition"]),
        cgroups=boolean(mine["slurm_cgroups"], strict=False),
        extra=tuple(_lines(mine["slurm_extra_lines"])),
        qos=tuple(mine[limits.QOS]),
        accounts=tuple(mine[limits.ACCOUNTS]),
        delete_accounting=boolean(mine["slurm_delete_accounting"], strict=False),
    )


def state_of(variables: Mapping[str, Any]) -> str:
    """Return True if a host is of a cluster that others run, of one that the role installs, or of none."""
    return str(variables.get("slurm_state") or "absent")


def given(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of the role, those that are not set with its defaults."""
    found = {name: variables.get(name) for name in DEFAULTS}
    return {name: DEFAULTS[name] if value is None else value for name, value in found.items()}


def _lines(value: Any) -> list[str]:
    """Return lines as they are: a comma is a part of one."""
    return [value] if isinstance(value, str) and value else [str(one) for one in value or []]


def is_node_name(name: str) -> bool:
    """Return True if Slurm takes it for the name of one node."""
    return bool(_NAME.fullmatch(name))


def problems(variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of values that are set; no fact of a host is needed for it."""
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

    yield from _line_problems(_lines(mine["slurm_extra_lines"]))
    yield from limits.problems(mine[limits.QOS], mine[limits.ACCOUNTS])
    if state_of(variables) == PRESENT:
        yield from _unfit_for_ours(mine)


def _line_problems(given_lines: Iterable[str]) -> Iterator[Problem]:
    for one in given_lines:
        found = _LINE.fullmatch(one)
        if not found:
            yield Problem("slurm_no_line", "slurm_extra_lines", {"value": one})
        elif found.group(1).lower() in WRITTEN:
            yield Problem("slurm_written_key", found.group(1))


def _unfit_for_ours(mine: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield values that only a cluster of others can have."""
    for name in ("slurm_directory", "slurm_version", "slurm_node_name"):
        if mine[name] != DEFAULTS[name]:
            yield Problem("slurm_external_only", name)
    if mine["slurm_autodetect"] == "nvml":
        yield Problem("slurm_no_plugin", "slurm_autodetect")


def type_name(name: str) -> str:
    """Return NVML's name of a GPU as Slurm's plugins spell it (src/plugins/gpu/common/gpu_common.c, underscorify_tolower)."""
    return name.lower().replace(" ", "_")


def misfits(groups: Mapping[str, Iterable[str]], variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems with what the inventory lacks for a host that is of a cluster."""
    state, controllers = state_of(variables), list(groups.get(CONTROLLERS) or ())
    if state in (EXTERNAL, PRESENT) and not controllers:
        yield Problem("slurm_no_controller", CONTROLLERS, {"state": state})
    mine = given(variables)
    if state == EXTERNAL:
        yield from (Problem("slurm_present_only", name) for name in (limits.QOS, limits.ACCOUNTS) if mine[name])
    if state != PRESENT:
        return
    yield from limits.misfits(mine[limits.QOS], mine[limits.ACCOUNTS])
    if len(controllers) > 1:
        yield Problem("slurm_two_controllers", CONTROLLERS, {"hosts": controllers})
    for one in controllers:
        if one in (groups.get(NODES) or ()):
            yield Problem("slurm_controller_is_node", one)
    for one in groups.get(LOGIN_NODES) or ():
        for group in (NODES, CONTROLLERS):
            if one in (groups.get(group) or ()):
                yield Problem("slurm_no_login_node", one, {"group": group})
