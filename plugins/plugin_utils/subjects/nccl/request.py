# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a user's request for /etc/nccl.conf, and refuse invalid values before a node is contacted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ...documents.parsing import parse
from ...problems.problem import Problem
from ..options import as_list

# The defaults of the role's variables about the file (a test compares).
DEFAULTS: dict[str, Any] = {"nccl_conf_state": "absent", "nccl_conf_variables": {}, "nccl_conf_elsewhere": []}
TABLE = Path(__file__).resolve().parents[4] / "data" / "nccl" / "refused.yml"
_NAME = re.compile(r"NCCL_[A-Z0-9_]+")
# NCCL reads this much of a value and no more: src/misc/param.cc.
LONGEST = 1023


@dataclass(frozen=True)
class Refused:
    """A variable that is refused by name."""

    name: str
    reason: str
    source: str


@dataclass(frozen=True)
class Request:
    """The variables; None for one that is left to NCCL whatever was measured."""

    present: bool = False
    variables: dict[str, str | None] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()


@cache
def refused() -> tuple[Refused, ...]:
    """Return the table; raise DocumentError for a row of the wrong shape."""
    rows: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["rows"]
    return tuple(parse(Refused, row, f"refused[{number}]") for number, row in enumerate(rows))


def request(variables: Mapping[str, Any]) -> Request:
    """Return the request of the variables; those that are not set have their role's default."""
    given = {name: variables.get(name, default) for name, default in DEFAULTS.items()}
    return Request(
        present=given["nccl_conf_state"] == "present",
        variables={str(name): _text(value) for name, value in given["nccl_conf_variables"].items()},
        elsewhere=tuple(map(str, as_list(given["nccl_conf_elsewhere"]))),
    )


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(int(value)) if isinstance(value, bool) else str(value)


def problems(wanted: Request) -> Iterator[Problem]:
    """Yield the problems of values that are not valid, or are refused by name; no fact of a node is needed for it."""
    table = {row.name: row for row in refused()}
    for name, value in wanted.variables.items():
        row = table.get(name)
        if not _NAME.fullmatch(name):
            yield Problem("nccl_no_variable", name, {"variable": "nccl_conf_variables"})
        elif row and value is not None:
            yield Problem("nccl_refused", name, {"reason": row.reason, "source": row.source})
        elif value is not None and not _is_value(value):
            yield Problem("nccl_no_value", name, {"value": value})
    for name in wanted.elsewhere:
        if not _NAME.fullmatch(name):
            yield Problem("nccl_no_variable", name, {"variable": "nccl_conf_elsewhere"})


def _is_value(value: str) -> bool:
    """Return True if NCCL reads the value as it is: it trims nothing, and ends it with the line."""
    return value == value.strip() != "" and value.isprintable() and len(value.encode()) <= LONGEST
