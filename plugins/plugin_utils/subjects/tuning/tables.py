# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of data/tuning: what is set, which arguments the kernel may get, and what is refused by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

from ...documents.parsing import parse

DIRECTORY = Path(__file__).resolve().parents[4] / "data" / "tuning"
T = TypeVar("T")


@dataclass(frozen=True)
class SettingRow:
    """A setting for nodes on which the condition holds; see data/tuning/settings.yml."""

    kind: str
    subject: str
    value: str
    condition: str
    reason: str
    source: str
    floor: bool = False
    variable: str = ""


@dataclass(frozen=True)
class ArgumentRow:
    """An argument of the kernel that may be asked for."""

    argument: str
    reason: str
    source: str


@dataclass(frozen=True)
class RefusedRow:
    """A key, a value of it, or an argument that is refused; name and value are regular expressions."""

    kind: str
    name: str
    reason: str
    source: str
    value: str = ""

    def matches(self, kind: str, name: str, value: str = "") -> bool:
        """Return True if this is about a key and its value, or about an argument."""
        if kind != self.kind or not re.fullmatch(self.name, name):
            return False
        return not self.value or bool(re.fullmatch(self.value, value))


@dataclass(frozen=True)
class Tables:
    """All rows, in the order of their files."""

    settings: tuple[SettingRow, ...]
    arguments: tuple[ArgumentRow, ...]
    refused: tuple[RefusedRow, ...]


@cache
def load() -> Tables:
    """Return the tables; raise DocumentError for a row of the wrong shape."""
    return Tables(_rows("settings", SettingRow), _rows("arguments", ArgumentRow), _rows("refused", RefusedRow))


def _rows(name: str, cls: type[T]) -> tuple[T, ...]:
    rows: list[dict[str, Any]] = yaml.safe_load((DIRECTORY / f"{name}.yml").read_text(encoding="utf-8"))["rows"]
    return tuple(parse(cls, row, f"{name}[{n}]") for n, row in enumerate(rows))
