# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Common parts of frameworks on top of PyTorch: releases in one package, and the PyTorch that each takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from .component import first_to_last
from .facts import Machine
from .input_error import InputError
from .libraries import SpecifierSet
from .model import AnyCandidate, Candidate, Question
from .rows import Arch
from .tables import Subject, Tables
from .versions import matches

if TYPE_CHECKING:
    from typing_extensions import NotRequired

COLUMNS = ("release", "released", "Python", "PyTorch")


class ExtensionRow(TypedDict):
    """arch: those that wheels are for; torch: the range of PyTorch that it requires; glibc: None where it is not known, absent where
    nothing is compiled; cuda: the major that it is compiled for, where its metadata tells."""

    version: str
    released: str
    python: list[str]
    glibc: NotRequired[str | None]
    arch: list[Arch]
    torch: str
    cuda: NotRequired[str]
    read: str
    sources: list[str]


Extension = Candidate[ExtensionRow]


def releases(name: str, rows: Iterable[ExtensionRow], question: Question) -> list[Extension]:
    """Return the releases that the constraint allows, the newest first."""
    constraint = question.constraint(name)
    found: list[Extension] = [
        Candidate(name, row["version"], row=row) for row in rows if matches(row["version"], constraint)
    ]
    return found[::-1]


def python_reason(name: str, one: Extension, python: AnyCandidate) -> str | None:
    """Return the reason why a release is not for a Python."""
    known = one.row["python"]
    if python.version in known:
        return None
    return f"{name} {one.version} is for Python {known[0]} to {known[-1]}, not for {python.version}"


def arch_reason(name: str, one: Extension, arch: Machine) -> str | None:
    """Return the reason why a release is not for an architecture."""
    return None if arch.version in one.row["arch"] else f"{name} {one.version} has no wheels for {arch.version}"


def torch_reason(name: str, one: Extension, torch: AnyCandidate) -> str | None:
    """Return the reason why a release does not take a PyTorch."""
    wanted = one.row["torch"]
    if SpecifierSet(wanted).contains(torch.version):
        return None
    return f"{name} {one.version} requires PyTorch {wanted.removeprefix('==')}, not {torch.version}"


def gpu_mistake(name: str, question: Question) -> InputError | None:
    """Return the mistake that what computes on GPUs only is asked for on a host without."""
    return InputError("no_gpu", name) if name in question.frameworks and question.accelerator == "cpu" else None


def wheels_mistake(name: str, question: Question) -> InputError | None:
    """Return the mistake that what the package index has as source only is asked for where nothing says that the site has a wheel."""
    has = question.constraints.get("wheels") == "site"
    return InputError("no_wheels", name) if name in question.frameworks and not has else None


def lines(tables: Tables, subject: Subject[Any, Any]) -> Iterator[tuple[object, ...]]:
    """Yield the lines of documentation about a table, the newest release first."""
    rows: Iterable[Mapping[str, Any]] = reversed(tables.rows(subject))
    for row in rows:
        yield row["version"], row["released"], first_to_last(row["python"]), row["torch"].removeprefix("==")
