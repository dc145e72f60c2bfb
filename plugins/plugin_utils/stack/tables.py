# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The compatibility tables of data/stack, read once and indexed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from .versions import minor

DIRECTORY = Path(__file__).resolve().parents[3] / "data" / "stack"
SUBJECTS = (
    "ansible_core", "archives", "conda", "cuda", "cudnn", "cupy", "distros", "driver_packages", "drivers",
    "gpus", "horovod", "nccl", "repositories", "sizes", "tensorflow", "torch",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Tables:
    """All tables by subject, as plain dicts; rows keep the order of their file."""

    version: str
    subjects: dict

    def rows(self, subject: str) -> list[dict]:
        return self.subjects[subject]["rows"]

    def find(self, subject: str, **keys) -> dict | None:
        """The first row whose columns have these values."""
        return next((row for row in self.rows(subject) if all(row.get(k) == v for k, v in keys.items())), None)

    def branch(self, number: int) -> dict | None:
        return self.find("drivers", branch=number)

    def bundled_driver(self, cuda: str) -> str:
        """The driver a toolkit was released with: of its exact update, else the oldest of its minor."""
        return _bundled_driver(self, cuda)

    def driver_floor(self, cuda: str) -> str:
        """The oldest driver that runs programs of this toolkit: the floor of its major, or the driver it came with."""
        return _driver_floor(self, cuda)

    def major_driver_floor(self, major: str) -> str:
        """Return the oldest driver that runs programs of any toolkit of this major."""
        return next(row["min_driver"] for row in self.rows("cuda") if row["version"].startswith(f"{major}."))


@cache
def _bundled_driver(tables: Tables, cuda: str) -> str:
    row = tables.find("cuda", version=minor(cuda))
    if row is None:
        return "0"
    updates = row["updates"]
    return updates.get(cuda) or next(iter(updates.values()), row["min_driver"])


@cache
def _driver_floor(tables: Tables, cuda: str) -> str:
    row = tables.find("cuda", version=minor(cuda))
    return min(row["min_driver"], _bundled_driver(tables, cuda), key=_driver_order) if row else "0"


def _driver_order(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def read_yaml(path: Path):
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with path.open(encoding="utf-8") as stream:
        return yaml.load(stream, Loader=loader)  # noqa: S506 (a safe loader in both cases)


def _inherit(rows: list[dict]) -> list[dict]:
    """Fill rows that say like: from the row of that id with the same version."""
    full = {(row["id"], row["version"]): row for row in rows if "like" not in row}
    return [{**full[row["like"], row["version"]], **row} if "like" in row else row for row in rows]


@cache
def load(directory: Path = DIRECTORY) -> Tables:
    subjects = {name: read_yaml(directory / f"{name}.yml") for name in SUBJECTS}
    subjects["distros"]["rows"] = _inherit(subjects["distros"]["rows"])
    for name in ("profiles", "sources"):
        subjects[name] = read_yaml(directory / f"{name}.yml")
    return Tables(read_yaml(directory / "version.yml")["table_version"], subjects)
