# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The abilities of single versions of Slurm: data/slurm/abilities.yml."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ...documents.parsing import parse

TABLE = Path(__file__).resolve().parents[4] / "data" / "slurm" / "abilities.yml"


@dataclass(frozen=True)
class Ability:
    """A row of the table. since: the first version that can do it; meaning: what it is, for a sentence."""

    name: str
    since: str
    meaning: str
    source: str


@cache
def load() -> dict[str, Ability]:
    """Return the rows by their names; raise DocumentError for a row of the wrong shape."""
    rows: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["rows"]
    found = (parse(Ability, row, f"abilities[{number}]") for number, row in enumerate(rows))
    return {one.name: one for one in found}


def can(version: str, ability: str) -> bool:
    """Return True if a version such as 24.11.5 has an ability."""
    return _numbers(version) >= _numbers(load()[ability].since)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
