# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The compatibility tables of data/stack, read once and indexed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypedDict, TypeVar, cast, overload

import yaml

from .rows import (
    AnsibleCoreRow,
    ArchitectureRow,
    BoardRow,
    BranchRow,
    ChipRow,
    CondaRow,
    CudaRow,
    DistroRow,
    GpuRow,
    PublishedRow,
    RepositoryRow,
)
from .subjects import Subjects
from .versions import major, minor

DIRECTORY = Path(__file__).resolve().parents[3] / "data" / "stack"


RowT = TypeVar("RowT")
BesideT = TypeVar("BesideT")


class Nothing(TypedDict):
    """The part next to the rows that most tables have."""


@dataclass(frozen=True)
class Subject(Generic[RowT, BesideT]):
    """A table that belongs to a component: its file's name, and the types of its rows and of what stands next to them."""

    name: str
    row: type[RowT]
    beside: type[BesideT]


@dataclass(frozen=True, eq=False)
class Tables:
    """All tables by subject; rows keep the order of their file. published: those of rows that are in no file."""

    version: str
    subjects: Subjects
    published: tuple[PublishedRow, ...] = ()

    @overload
    def rows(self, subject: Subject[RowT, Any]) -> list[RowT]: ...
    @overload
    def rows(self, subject: Literal["ansible_core"]) -> list[AnsibleCoreRow]: ...
    @overload
    def rows(self, subject: Literal["architectures"]) -> list[ArchitectureRow]: ...
    @overload
    def rows(self, subject: Literal["boards"]) -> list[BoardRow]: ...
    @overload
    def rows(self, subject: Literal["conda"]) -> list[CondaRow]: ...
    @overload
    def rows(self, subject: Literal["cuda"]) -> list[CudaRow]: ...
    @overload
    def rows(self, subject: Literal["distros"]) -> list[DistroRow]: ...
    @overload
    def rows(self, subject: Literal["drivers"]) -> list[BranchRow]: ...
    @overload
    def rows(self, subject: Literal["gpus"]) -> list[GpuRow]: ...
    @overload
    def rows(self, subject: Literal["pci_ids"]) -> list[ChipRow]: ...
    @overload
    def rows(self, subject: Literal["repositories"]) -> list[RepositoryRow]: ...

    def rows(self, subject: Any) -> Any:
        """Return the rows of a subject."""
        return self._rows(subject.name if isinstance(subject, Subject) else subject)

    def beside(self, subject: Subject[Any, BesideT]) -> BesideT:
        """Return the values that a table holds next to its rows."""
        table: Mapping[str, Any] = self.subjects
        return cast(BesideT, table[subject.name])

    @overload
    def find(self, subject: Literal["ansible_core"], *, version: str) -> AnsibleCoreRow | None: ...
    @overload
    def find(self, subject: Literal["cuda"], *, version: str) -> CudaRow | None: ...

    def find(self, subject: str, **keys: object) -> Any:
        """Return the first row whose columns have these values, or None."""
        return next((row for row in self._rows(subject) if all(row.get(k) == v for k, v in keys.items())), None)

    @overload
    def known(self, subject: Literal["drivers"], *, branch: int) -> BranchRow: ...
    @overload
    def known(self, subject: Literal["repositories"], *, slug: str) -> RepositoryRow: ...

    def known(self, subject: str, **keys: object) -> Any:
        """Return the row that another table refers to; raise LookupError when there is none."""
        for row in self._rows(subject):
            if all(row.get(k) == v for k, v in keys.items()):
                return row
        raise LookupError(f"table {subject} has no row with {keys}")

    def _rows(self, subject: str) -> list[dict[str, Any]]:
        """Return the rows that were read from a subject's file; the overloads of rows say what stands in it."""
        table: Mapping[str, Any] = self.subjects
        rows: list[dict[str, Any]] = table[subject]["rows"]
        return rows

    def branch(self, number: int) -> BranchRow:
        """Return a driver branch; raise LookupError for one that NVIDIA does not have."""
        return self.known("drivers", branch=number)

    def bundled_driver(self, cuda: str) -> str:
        """Return the driver a toolkit was released with: of its exact update, else the oldest of its minor."""
        return _bundled_driver(self, cuda)

    def driver_floor(self, cuda: str) -> str:
        """Return the oldest driver that runs programs of this toolkit: the floor of its major, or the driver it came with."""
        return _driver_floor(self, cuda)

    def major_driver_floor(self, major: str) -> str:
        """Return the oldest driver that runs programs of any toolkit of this major."""
        return next(row["min_driver"] for row in self.rows("cuda") if row["version"].startswith(f"{major}."))

    def lowest_capability(self, major: str) -> str:
        """Return the lowest compute capability that any toolkit of this major compiles for."""
        return min(
            (row["min_cc"] for row in self.rows("cuda") if row["version"].startswith(f"{major}.")), key=_driver_order
        )

    def first_cuda(self, capability: str) -> str:
        """Return the first toolkit that knew any GPU of the major of a compute capability."""
        return _first_cuda(self, major(capability))


@cache
def _first_cuda(tables: Tables, number: str) -> str:
    rows = [row for row in tables.rows("architectures") if major(row["compute_capability"]) == number]
    return min((row["min_cuda"] for row in rows), key=_driver_order)


@cache
def _bundled_driver(tables: Tables, cuda: str) -> str:
    row = tables.find("cuda", version=minor(cuda))
    if row is None:
        return "0"
    updates = row["updates"]
    return updates.get(cuda) or next(filter(None, updates.values()), row["min_driver"])


@cache
def _driver_floor(tables: Tables, cuda: str) -> str:
    row = tables.find("cuda", version=minor(cuda))
    return min(row["min_driver"], _bundled_driver(tables, cuda), key=_driver_order) if row else "0"


def _driver_order(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with path.open(encoding="utf-8") as stream:
        return yaml.load(stream, Loader=loader)  # noqa: S506 (a safe loader in both cases)


def _inherit(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fill rows that say like: from the row of that id with the same version."""
    full = {(row["id"], row["version"]): row for row in rows if "like" not in row}
    return [{**full[row["like"], row["version"]], **row} if "like" in row else row for row in rows]


@cache
def load(directory: Path = DIRECTORY) -> Tables:
    """Read every table of a directory; its schema.json and the tests of the tables say what their rows are."""
    subjects = {path.stem: read_yaml(path) for path in sorted(directory.glob("*.yml"))}
    subjects["distros"]["rows"] = _inherit(subjects["distros"]["rows"])
    return Tables(subjects["version"]["table_version"], cast(Subjects, subjects))
