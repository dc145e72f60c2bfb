# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages that are brought to their versions and held together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from ..documents.comparison import Comparison
from ..documents.observed import Observed
from ..documents.stack import Package
from ..drift.builds import is_built
from ..drift.components import BY_HOLD
from ..drift.packaged import Desired
from ..drift.packages import changes, compare_packages, compare_unwanted, named
from .kernel_headers import header_packages


@dataclass(frozen=True)
class PackagePlan:
    """Packages to install, remove and hold. Patterns are shell patterns.

    ``held`` None: these packages are not held. ``absent``: they go, and their hold with them. ``desired``: the packages
    are a component of it, and drift says what has to be done; else they are compared with what is installed.
    """

    name: str
    packages: tuple[Package, ...] = ()
    first: tuple[Package, ...] = ()  # in a transaction of their own: they pin the others or bring their repository
    required: tuple[str, ...] = ()  # full names; nothing is installed where no repository has one of them
    optional: tuple[str, ...] = ()  # names; installed where a repository has them
    unwanted: tuple[str, ...] = ()  # patterns; removed after the installation
    unpinning: tuple[str, ...] = ()  # patterns; of what is unwanted, removed before the installation
    held: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()
    version: str | None = None  # that dependencies which ``held`` names take; a pattern
    services: tuple[str, ...] = ()
    module_stream: str | None = None
    hold_kernel: bool = False
    absent: bool = False
    desired: Desired | None = None


@dataclass(frozen=True)
class Steps:
    """The steps to take, in this order."""

    unpin: tuple[str, ...] = ()
    first: tuple[Package, ...] = ()
    install: tuple[Package, ...] = ()
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.install or self.required or self.first or self.remove or self.unpin)


def steps(plan: PackagePlan, observed: Observed) -> Steps:
    """Return the steps that bring a node to the plan."""
    wanted = changes(_comparisons(plan, observed), (*plan.first, *plan.packages))
    before = {package.name for package in plan.first}
    return Steps(
        unpin=tuple(name for name in wanted.remove if _fits(name, plan.unpinning)),
        first=tuple(package for package in wanted.install if package.name in before),
        install=tuple(package for package in wanted.install if package.name not in before),
        required=plan.required,
        optional=tuple(name for name in plan.optional if name not in (observed.packages or {})),
        remove=tuple(name for name in wanted.remove if not _fits(name, plan.unpinning)),
    )


def _comparisons(plan: PackagePlan, observed: Observed) -> list[Comparison]:
    if plan.desired is not None:
        return BY_HOLD[plan.name].comparisons(plan.desired, observed)
    wanted = {package.name for package in (*plan.packages, *plan.first)}
    present = {**observed.leftover_packages, **(observed.packages or {})}
    unwanted = [name for name in named(plan.unwanted, present) if name not in wanted]
    return [
        *compare_packages(plan.name, (*plan.first, *plan.packages), observed),
        *compare_unwanted(plan.name, unwanted, observed),
    ]


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def component_plan(name: str, desired: Desired, hold_kernel: bool = False) -> PackagePlan | None:
    """Return the plan of a component of the stack, by the name of its hold; None where the stack has none."""
    packaged = BY_HOLD[name]
    found, hold = packaged.planned(desired), packaged.hold_of(replace(desired, hold_kernel=hold_kernel))
    if found is None or hold is None:
        return None
    plan = PackagePlan(
        name,
        found.packages,
        unpinning=packaged.unpinning,
        held=hold.packages,
        excluded=hold.excluded,
        services=hold.services,
        module_stream=hold.module_stream,
        hold_kernel=hold.kernel,
        desired=desired,
    )
    driver = desired.stack.driver if packaged.name == "driver" else None
    if driver is None:
        return plan
    return replace(
        plan,
        first=driver.pinning_packages,
        version=f"{driver.version}-*" if driver.source == "nvidia" else None,
    )


def absent_plan(name: str, desired: Desired) -> PackagePlan:
    """Return the plan that removes a component, whether or not the stack has it."""
    packaged = BY_HOLD[name]
    found = packaged.planned(desired)
    patterns = desired.driver_patterns if packaged.name == "driver" else packaged.held or (found.held if found else ())
    judged = desired if packaged.name in desired.absent else None
    return PackagePlan(name, unwanted=patterns, held=patterns, absent=True, desired=judged)


def with_headers(plan: PackagePlan, desired: Desired, observed: Observed) -> PackagePlan:
    """Return the plan with the headers of the kernels that must have the driver's module."""
    headers = header_packages(desired.stack, observed, is_built(desired.stack.driver))
    packages = {package.name: package for package in (*headers.packages, *plan.packages)}
    return replace(
        plan,
        packages=tuple(packages.values()),
        required=(*plan.required, *headers.required),
        optional=(*plan.optional, *headers.optional),
    )


def own_plan(name: str, options: Mapping[str, Any], absent: bool = False) -> PackagePlan:
    """Return a plan that a user wrote: the fields above, packages as names or ``{name, version}``.

    absent: all that it names is removed. ValueError for what is not a package.
    """
    packages, first = (_packages(options.get(key) or []) for key in ("packages", "first"))
    lists = ("optional", "unwanted", "unpinning", "excluded", "services")
    given: dict[str, Any] = {key: tuple(options.get(key) or ()) for key in lists}
    held = None if options.get("held") is None else tuple(options["held"])
    if absent:
        names = tuple(package.name for package in (*packages, *first))
        return PackagePlan(name, unwanted=(*names, *given["unwanted"], *(held or ())), held=held, absent=True)
    stream, version = options.get("module_stream") or None, options.get("version") or None
    return PackagePlan(
        name, packages, first, held=held, version=version, module_stream=stream,
        hold_kernel=bool(options.get("hold_kernel")), **given,
    )  # fmt: skip


def _packages(given: Iterable[Any]) -> tuple[Package, ...]:
    found = []
    for one in given:
        if isinstance(one, str):
            found.append(Package(str(one)))
        elif isinstance(one, Mapping) and set(one) <= {"name", "version"} and one.get("name"):
            found.append(Package(str(one["name"]), None if one.get("version") is None else str(one["version"])))
        else:
            raise ValueError(f"{one!r} is not a package: give a name, or a mapping with name and version")
    return tuple(found)
