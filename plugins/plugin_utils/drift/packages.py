# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a component's packages, and say what a package manager has to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..documents.comparison import Comparison, Remedy, Status, compared
from ..documents.observed import Observed
from ..documents.stack import Component, Driver, Package
from .versions import satisfies

_DRIVER_VERSION = re.compile(r"(?:\d+:)?(\d{3})\.\d")
_NAMED_BRANCH = re.compile(r"-(\d{3})(?=-|$)")


@dataclass(frozen=True)
class Changes:
    """The package changes that lead to the plan: versions to install, and names to remove."""

    install: tuple[Package, ...] = ()
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.install or self.remove)


def compare_packages(component: str, planned: Iterable[Package], observed: Observed) -> list[Comparison]:
    """Return one comparison for each planned package."""
    installed = observed.packages
    return [
        compared(
            component,
            package.name,
            package.version or "any version",
            None if installed is None else installed.get(package.name),
            None if installed is None else satisfies(installed.get(package.name), package.version),
            Remedy.INSTALL,
            "package",
        )
        for package in planned
    ]


def compare_unwanted(component: str, names: Iterable[str], observed: Observed) -> list[Comparison]:
    """Return one comparison for each installed (or only configured) package that must go."""
    present = {**observed.leftover_packages, **(observed.packages or {})}
    return [
        Comparison(
            component, name, "not installed", present[name] or "installed", Status.UNWANTED, Remedy.REMOVE, "package"
        )
        for name in names
        if name in present
    ]


def changes(comparisons: Iterable[Comparison], planned: Iterable[Package]) -> Changes:
    """Return the changes that these comparisons ask of the package manager; planned: the packages they are about."""
    lacking = {one.subject for one in comparisons if one.kind == "package" and one.remedy is Remedy.INSTALL}
    unwanted = [one.subject for one in comparisons if one.kind == "package" and one.remedy is Remedy.REMOVE]
    return Changes(tuple(package for package in planned if package.name in lacking), tuple(unwanted))


def named(patterns: Iterable[str], packages: Mapping[str, object]) -> list[str]:
    """Return the names that one of the shell patterns fits, sorted."""
    return sorted(name for name in packages if _fits(name, patterns))


def superseded(driver: Driver, observed: Observed) -> list[str]:
    """Return packages of other branches, the other kernel modules or another source than the planned driver's.

    Packages that the plan wants under the same name are not among them: they are upgraded or downgraded.
    """
    present = {**observed.leftover_packages, **(observed.packages or {})}
    wanted = {package.name for package in (*driver.packages, *driver.pinning_packages)}
    return sorted(
        name for name, version in present.items() if name not in wanted and _is_superseded(driver, name, version or "")
    )


def others(component: Component, patterns: Iterable[str], observed: Observed) -> list[str]:
    """Return packages that the patterns name and the plan does not: another version under another name."""
    present = {**observed.leftover_packages, **(observed.packages or {})}
    wanted = {package.name for package in component.packages}
    return [name for name in named(patterns, present) if name not in wanted]


def _is_superseded(driver: Driver, name: str, version: str) -> bool:
    if not _fits(name, driver.held):
        return False
    branches = {found[1] for found in (_NAMED_BRANCH.search(name), _DRIVER_VERSION.match(version)) if found}
    return bool(branches - {driver.branch}) or _fits(name, driver.conflicting)


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
