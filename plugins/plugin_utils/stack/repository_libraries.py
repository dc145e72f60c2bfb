# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Common parts of cuDNN, NCCL and the Container Toolkit: they stand in the CUDA repository."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict, TypeVar

from .component import Beside
from .model import NONE, Candidate, Part, Question
from .package import Package
from .tables import Tables
from .versions import matches, version


class PackagedRow(TypedDict):
    """A release that stands in the CUDA repository; repositories: where it was seen."""

    version: str
    repositories: list[str]


class LibraryRow(PackagedRow):
    """A build of a library that stands in the CUDA repository: of NCCL, and with min_cc of cuDNN."""

    cuda: str


Packaged = Candidate[PackagedRow]
Library = Candidate[LibraryRow]
PackagedT = TypeVar("PackagedT", bound=PackagedRow)
RowT = TypeVar("RowT", bound=LibraryRow)


def packaged(name: str, rows: Sequence[RowT], question: Question) -> list[Candidate[RowT]]:
    """Candidates of a library that stands in the CUDA repository, what was seen in the host's own before the rest."""
    constraint = question.constraints.get(name)
    found: list[Candidate[RowT]] = [] if constraint else [Candidate(name, NONE)]
    slug = question.os["repository"] if question.os else None
    ordered = sorted(
        rows,
        key=lambda row: (slug in row["repositories"], version(row["version"]), version(row["cuda"])),
        reverse=True,
    )
    return found + [
        Candidate(name, row["version"], f"CUDA {row['cuda']}", row)
        for row in ordered
        if matches(f"{row['version']}+{_label(row)}", constraint or "latest")
    ]


def _label(row: LibraryRow) -> str:
    return f"cuda{row['cuda']}"


def label_of_build(one: Library) -> str:
    """Return the label by which a version names a build of it, as those of packages do."""
    return _label(one.row)


def repository_warnings(tables: Tables, question: Question, one: Packaged, beside: Beside) -> list[str]:
    """Return the warning that a release was not seen in the host's repository."""
    slug = question.system["repository"]
    if slug in one.row["repositories"]:
        return []
    return [f"{one} was not seen in the repository {slug}, only in {', '.join(one.row['repositories']) or 'others'}"]


def is_in_repository(rows: Sequence[PackagedT], question: Question, one: Packaged) -> bool:
    """Return True if a release was seen in the host's repository, unless it was not looked at."""
    if not question.os:
        return True
    slug = question.os["repository"]
    return slug in one.row["repositories"] or not any(slug in row["repositories"] for row in rows)


def library_result(
    question: Question, chosen: Candidate[RowT] | None, packages: Callable[[Question, Candidate[RowT]], list[Package]]
) -> Part | None:
    """Return a library as a part of the stack."""
    if chosen is None:
        return None
    return {"version": chosen.version, "cuda": chosen.row["cuda"], "packages": packages(question, chosen)}
