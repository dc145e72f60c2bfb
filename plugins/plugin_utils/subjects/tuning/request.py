# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a user's request to role tuning, and refuse invalid values before a node is contacted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ....module_utils.host.sysctl import normalise
from ...problems.problem import Problem
from ..options import as_list
from .tables import Tables

# The defaults of the role's variables (a test compares).
DEFAULTS: dict[str, Any] = {
    "tuning_state": "absent",
    "tuning_transport": "auto",
    "tuning_neighbours": 0,
    "tuning_ranks_bound": False,
    "tuning_sysctl": {},
    "tuning_governor": "performance",
    "tuning_idle_latency": 99,
    "tuning_transparent_hugepage": "",
    "tuning_irq_interfaces": [],
    "tuning_keep_ipc": True,
    "tuning_limits": {},
    "tuning_limit_services": [],
    "tuning_kernel_arguments": [],
}
LIMITS = ("memlock", "nofile", "nproc")
_KEY = re.compile(r"[a-z0-9_-]+(\.[A-Za-z0-9_/@:-]+)+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@:-]*")


@dataclass(frozen=True)
class Request:
    """The variables; keys with dots, values as text, None for a key that is left alone."""

    present: bool = False
    transport: str = "auto"
    neighbours: int = 0
    ranks_bound: bool = False
    sysctl: dict[str, str | None] = field(default_factory=dict)
    switches: dict[str, str] = field(default_factory=dict)
    interfaces: tuple[str, ...] = ()
    logind: dict[str, str] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)
    services: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


def request(variables: Mapping[str, Any]) -> Request:
    """Return the request of the variables; those that are not set have their role's default."""
    given = {name: variables.get(name, default) for name, default in DEFAULTS.items()}
    switches = {
        "governor": given["tuning_governor"],
        "idle_latency": given["tuning_idle_latency"] or "",
        "transparent_hugepage": given["tuning_transparent_hugepage"],
    }
    return Request(
        present=given["tuning_state"] == "present",
        transport=str(given["tuning_transport"]),
        neighbours=int(given["tuning_neighbours"]) or len((variables.get("groups") or {}).get("gpu_nodes") or ()),
        ranks_bound=boolean(given["tuning_ranks_bound"], strict=False),
        sysctl={normalise(str(key)): words(value) for key, value in given["tuning_sysctl"].items()},
        switches={name: str(value) for name, value in switches.items() if value not in ("", None)},
        interfaces=tuple(map(str, as_list(given["tuning_irq_interfaces"]))),
        logind={"RemoveIPC": "no"} if boolean(given["tuning_keep_ipc"], strict=False) else {},
        limits={
            name: "unlimited" if str(value) == "infinity" else str(value)
            for name, value in given["tuning_limits"].items()
        },
        services=tuple(str(name).removesuffix(".service") for name in as_list(given["tuning_limit_services"])),
        arguments=tuple(map(str, as_list(given["tuning_kernel_arguments"]))),
    )


def words(value: Any) -> str | None:
    """Return a value as the kernel's file has it: words with single spaces; None stays."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(int(value))
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else " ".join(str(value).split())


def problems(wanted: Request, tables: Tables) -> Iterator[Problem]:
    """Yield the problems of values that are not valid, or are refused by name; no fact of a node is needed for it."""
    for key, value in wanted.sysctl.items():
        if not _KEY.fullmatch(key) or value == "":
            yield Problem("tuning_no_sysctl", key, {"value": value or ""})
        elif value is not None:
            yield from _refused(tables, "sysctl", key, value)
    allowed = [row.argument for row in tables.arguments]
    for argument in wanted.arguments:
        refused = list(_refused(tables, "argument", argument))
        yield from refused
        if not refused and argument not in allowed:
            yield Problem("tuning_unknown_argument", argument, {"arguments": allowed})
    yield from _limit_problems(wanted.limits)
    for variable, names in (("tuning_limit_services", wanted.services), ("tuning_irq_interfaces", wanted.interfaces)):
        for name in names:
            if not _NAME.fullmatch(name):
                yield Problem("tuning_no_name", name, {"variable": variable})


def _limit_problems(limits: Mapping[str, str]) -> Iterator[Problem]:
    for name, limit in limits.items():
        if name not in LIMITS:
            yield Problem("tuning_unknown_limit", name, {"limits": list(LIMITS)})
        elif not limit.isdigit() and (limit != "unlimited" or name == "nofile"):  # the kernel ends that at fs.nr_open
            yield Problem("tuning_no_limit", name, {"value": limit})


def _refused(tables: Tables, kind: str, name: str, value: str = "") -> Iterator[Problem]:
    for row in tables.refused:
        if row.matches(kind, name, value):
            yield Problem(f"tuning_refused_{kind}", name, {"value": value, "reason": row.reason, "source": row.source})
