# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drivers a host could have, best first: of its distribution's archive, and of every branch that NVIDIA publishes."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from ...model import Candidate, Question
from ...rows import BranchRow, DistroRow, Flavour, Source
from ...tables import Tables
from ...versions import major, matches, starts_with, version
from .owner import left_drivers
from .row import ARCHIVES, ArchiveRow, Driver, DriverRow, Origin, SuiteRow, Transition

if TYPE_CHECKING:
    from typing_extensions import Unpack

RELEASE = re.compile(r"[0-9]{3}(\.[0-9]+){1,2}")
STATUS = ("supported", "unknown", "eol")
LONG_LIVED = ("LTSB", "PB")
SOURCES: tuple[Source, ...] = ("nvidia", "distribution")


def drivers(tables: Tables, question: Question) -> list[Driver]:
    """Return every driver that the constraints allow, the preferred first."""
    constraint, source = question.constraint("driver"), question.constraint("driver_source")
    if question.owner:
        return left_drivers(tables, question.owner, question.constraints)
    found = _distribution_drivers(tables, question) + _branch_drivers(tables, question)
    found = [one for one in found if matches(one.version, constraint) and source in ("latest", one.row["source"])]
    flavour = question.constraint("kernel_modules")
    found = [one for one in found if flavour in ("latest", one.row["kernel_modules"])]
    order: list[Source] = [*(question.os["drivers"] if question.os else SOURCES), "distribution", "nvidia", "runfile"]
    return sorted(found, key=lambda one: _driver_preference(one, order))


def _driver_preference(
    one: Driver, sources: list[Source]
) -> tuple[tuple[int, bool], bool, int, int, tuple[int, ...], int]:
    """Supported branches first, then production branches, newest first, then the distribution's taste, newest version, default flavour."""
    branch = one.row["branch"]
    return (
        _standing(one, sources[0]),
        branch["type"] not in LONG_LIVED,
        -branch["branch"],
        sources.index(one.row["source"]),
        tuple(-part for part in version(one.version).release),
        branch["kernel_modules"].index(one.row["kernel_modules"]),
    )


def _standing(one: Driver, first: Source) -> tuple[int, bool]:
    """Return the branch's status at NVIDIA, and whether the driver is of a distribution that is not the first choice.

    A distribution keeps its own driver alive. Where it is not the first choice, its driver comes after NVIDIA's of supported branches, and before
    NVIDIA's of all others only if NVIDIA supports its branch, too.
    """
    status = STATUS.index(one.row["branch"]["status"])
    if one.row["source"] != "distribution":
        return status, False
    if first == "distribution":
        return 0, False
    return (len(STATUS) if status else 0), True


def ended(one: Driver) -> int:
    """Return the distance of a driver's branch from its support at NVIDIA; that a distribution keeps its own alive is said by no advice."""
    return STATUS.index(one.row["branch"]["status"])


def _driver(branch: BranchRow, number: str, source: Source, flavour: Flavour, **more: Unpack[Origin]) -> Driver:
    row: DriverRow = {"branch": branch, "source": source, "kernel_modules": flavour, **more}
    return Candidate("driver", number, f"{source}, {flavour} modules", row)


def _distribution_drivers(tables: Tables, question: Question) -> list[Driver]:
    """Drivers in the archive of the host's distribution; where one is insisted on, in all of them: a rule says why not."""
    os, insisted = question.os, question.constraint("driver_source") == "distribution"
    rows = [row for row in tables.rows(ARCHIVES) if os is None or insisted or in_archive_of(row, os)]
    return [one for row in rows for one in _archive_drivers(tables.branch(row["branch"]), row, question)]


def in_archive_of(row: ArchiveRow | Transition, os: DistroRow) -> bool:
    """Return True if a row of the archives is about this distribution."""
    return (row["id"], row["version"]) == (os["id"], os["version"])


def _archive_drivers(branch: BranchRow, row: ArchiveRow, question: Question) -> list[Driver]:
    """Return the drivers that one archive has in the suites the host has enabled."""
    # A host that follows the release under another name (stable, a mirror's own) tells nothing.
    enabled = {suite["suite"] for suite in row["suites"]} & set(question.suites or ())
    suites = [suite for suite in row["suites"] if not enabled or suite["suite"] in enabled]
    found = [
        # Only the newest version stays in an archive that is still updated: it is asked for by its branch.
        _driver(branch, suite["version"], "distribution", flavour, archive=row, suite=suite, moves=suite is suites[-1])
        for suite in suites
        for flavour in suite["kernel_modules"]
    ]
    return found + _unseen(question, row, branch, found)


def _unseen(question: Question, row: ArchiveRow, branch: BranchRow, found: list[Driver]) -> list[Driver]:
    """A version of the archive's branch that the tables have not seen yet, when it is asked for by its full number."""
    constraint = question.constraint("driver")
    if not _is_release_of(row["branch"], constraint):
        return []
    if any(starts_with(one.version, constraint) for one in found):
        return []
    suite: SuiteRow = {**row["suites"][-1], "version": constraint, "revision": f"{constraint}-*"}
    return [
        _driver(branch, constraint, "distribution", flavour, archive=row, suite=suite, known=False, moves=False)
        for flavour in suite["kernel_modules"]
    ]


def _is_release_of(branch: int, constraint: str) -> bool:
    """Return True if a constraint is written as the number of one release of a branch; a version of its packages is not."""
    return RELEASE.fullmatch(constraint) is not None and starts_with(constraint, str(branch))


def _branch_drivers(tables: Tables, question: Question) -> list[Driver]:
    """Every branch NVIDIA publishes: at its newest known version that is wanted, or at the very version asked for."""
    constraint = question.constraint("driver")
    source: Source = "runfile" if question.constraint("driver_source") == "runfile" else "nvidia"
    found = []
    for branch in tables.rows("drivers"):
        seen = known_versions(tables, branch)
        wanted = [number for number in seen if matches(number, constraint)]
        if not wanted and _is_release_of(branch["branch"], constraint):
            wanted = [constraint]
        for number in wanted[-1:]:
            found += [
                _driver(branch, number, source, flavour, known=number in seen) for flavour in branch["kernel_modules"]
            ]
    return found


@cache
def _seen_versions(tables: Tables) -> dict[int, list[str]]:
    seen = {number for row in tables.rows("cuda") for number in row["updates"].values() if number}
    seen |= {row["latest"] for row in tables.rows("drivers") if row["latest"]}
    branches: dict[int, list[str]] = {}
    for number in sorted(seen, key=version):
        branches.setdefault(int(major(number)), []).append(number)
    return branches


def known_versions(tables: Tables, branch: BranchRow) -> list[str]:
    """Return the versions of a branch seen in any table, oldest first; the bare branch where none was."""
    return _seen_versions(tables).get(branch["branch"]) or [str(branch["branch"])]
