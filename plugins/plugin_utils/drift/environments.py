# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare Python environments: the interpreter, what was asked for, and every package against the lock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..documents.comparison import Comparison, Remedy, Status, compared
from ..documents.observed import Conda, Observed
from ..documents.observed import Environment as Found
from ..documents.stack import Environment, System
from .interpreters import CONDA, home_satisfies, planned_home
from .requests import request_digest
from .versions import meets, python_satisfies, requirement

INSTALLED = "as installed"


def compare_environments(planned: tuple[Environment, ...], system: System, observed: Observed) -> list[Comparison]:
    """Return the comparisons of every planned environment."""
    return [
        comparison
        for environment in planned
        for comparison in _compare(environment, system, observed.environments, observed.measured)
    ]


def _compare(
    planned: Environment, system: System, environments: dict[str, Found] | None, measured: bool
) -> list[Comparison]:
    label = f"environment {planned.name}"
    known = measured and environments is not None
    found = (environments or {}).get(planned.name)
    return [
        *compare_interpreter(label, planned, found, known),
        *(_requirement(label, line, found, known) for line in planned.requirements),
        *(_lock(label, planned, system, found) if known and found else []),
        *(compare_files(label, found) if known and found else []),
        *(_conda(label, found.conda) if known and found and found.conda and by_conda(planned) else []),
    ]


def compare_interpreter(label: str, planned: Environment, found: Found | None, known: bool) -> list[Comparison]:
    """Return the comparisons that decide whether an environment is rebuilt: of Python's version, and where it is from."""
    python = found.python if found else None
    agrees = python_satisfies(python, planned.python) if known else None
    version = compared(label, "Python", planned.python, python, agrees, Remedy.ENVIRONMENT, "python")
    if found is None or planned.interpreter is None:
        return [version]
    agrees = home_satisfies(found.home, planned.interpreter) if known else None
    desired = planned_home(planned.interpreter)
    return [version, compared(label, "interpreter", desired, found.home, agrees, Remedy.ENVIRONMENT, "python")]


def _requirement(label: str, line: str, found: Found | None, known: bool) -> Comparison:
    wanted = requirement(line)
    if wanted is None:
        return Comparison(label, line, "as written", "", Status.UNKNOWN, Remedy.MEASURE, "requirement")
    name, specifier = wanted
    version = found.packages.get(name) if found else None
    agrees = meets(version, line) if known else None
    desired = specifier.removeprefix("==") or "any version"
    return compared(label, name, desired, version, agrees, Remedy.ENVIRONMENT, "requirement")


def _lock(label: str, planned: Environment, system: System, found: Found) -> list[Comparison]:
    """Return the differences, and what is compiled: the lock has dozens of packages that were not asked for by name."""
    lock = found.lock
    if lock is None or lock.request != request_digest(planned, system):
        status, observed = (Status.DIFFERS, "solved for another") if lock else (Status.MISSING, "")
        return [Comparison(label, "lock", "solved for this request", observed, status, Remedy.ENVIRONMENT, "lock")]
    compiled = compiled_packages(planned)
    locked = {**lock.packages, **compiled}
    different = compare_with_lock(label, locked, beside_conda(planned, locked, found.packages))
    right = {name: version for name, version in compiled.items() if name not in {one.subject for one in different}}
    return [
        *different,
        *(compared(label, name, version, version, True, Remedy.NONE, "locked") for name, version in right.items()),
    ]


def by_conda(planned: Environment) -> bool:
    """Return True if conda makes the environment, and wheels are installed next to its packages."""
    return planned.interpreter is not None and planned.interpreter.source == CONDA


def beside_conda(
    planned: Environment, locked: Mapping[str, str | None], installed: dict[str, str | None]
) -> dict[str, str | None]:
    """Return the packages that the lock of the wheels answers for: where conda brings others, only its own."""
    return {name: one for name, one in installed.items() if name in locked} if by_conda(planned) else installed


def _conda(label: str, found: Conda) -> list[Comparison]:
    """Return the packages of conda that are not those of its lock, and those whose files are not as they were installed."""
    if not found.complete or found.locked is None:
        observed = "interrupted" if found.locked is not None else "without a lock"
        return [Comparison(label, "conda", INSTALLED, observed, Status.DIFFERS, Remedy.ENVIRONMENT, "conda")]
    locked, installed = dict[str, str | None](found.locked), dict[str, str | None](found.packages)
    return [
        *(replace(one, subject=f"{one.subject} (conda)") for one in compare_with_lock(label, locked, installed)),
        *(
            Comparison(
                label, f"{name} (conda)", INSTALLED, f"changed: {path}", Status.DIFFERS, Remedy.ENVIRONMENT, "files"
            )
            for name, path in sorted(found.changed_files.items())
        ),
    ]


def compare_files(label: str, found: Found) -> list[Comparison]:
    """Return a comparison for each package whose files are not as they were installed; one for all of them where they are."""
    if not found.changed_files:
        return [Comparison(label, "files", INSTALLED, INSTALLED, Status.AS_PLANNED, Remedy.NONE, "files")]
    place = f" in {found.target}" if found.target else ""
    return [
        Comparison(label, name, INSTALLED, f"changed: {path}{place}", Status.DIFFERS, Remedy.ENVIRONMENT, "files")
        for name, path in sorted(found.changed_files.items())
    ]


def compiled_packages(planned: Environment) -> dict[str, str | None]:
    """Return {name: version} of what the lock does not have because it is compiled."""
    return {"horovod": planned.build.version} if planned.build else {}


def compare_with_lock(label: str, locked: dict[str, str | None], installed: dict[str, str | None]) -> list[Comparison]:
    """Return the packages that are not exactly those of the lock; a locked version that is None is any."""
    return [
        Comparison(
            label, name, *_desired(name, locked), installed.get(name) or "", status, Remedy.ENVIRONMENT, "locked"
        )
        for name in sorted({*locked, *installed})
        if (status := _status(name, locked, installed)) is not Status.AS_PLANNED
    ]


def _desired(name: str, locked: dict[str, str | None]) -> tuple[str]:
    return (locked[name] or "any version",) if name in locked else ("not installed",)


def _status(name: str, locked: dict[str, str | None], installed: dict[str, str | None]) -> Status:
    if name not in locked:
        return Status.UNWANTED
    if name not in installed:
        return Status.MISSING
    return Status.AS_PLANNED if locked[name] in (None, installed[name]) else Status.DIFFERS
