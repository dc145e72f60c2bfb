# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a packaged component: everything that drift, package plans and texts loop over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..documents.comparison import Comparison
from ..documents.observed import Hold, Observed, Service
from ..documents.stack import Component, Stack
from .names import DRIVER_EXCLUDED, DRIVER_PACKAGES
from .packages import compare_packages, compare_unwanted, named, others
from .services import compare_running


@dataclass(frozen=True)
class Desired:
    """The stack without what a node does not get, and the components that are to be absent from it."""

    stack: Stack
    absent: frozenset[str] = frozenset()
    driver_patterns: tuple[str, ...] = DRIVER_PACKAGES
    hold_kernel: bool = False
    persistence: bool = True


def compare_component(packaged: Packaged, desired: Desired, observed: Observed) -> list[Comparison]:
    """Compare packages and services; what is to be absent has no packages."""
    name, planned = packaged.name, packaged.planned(desired)
    if planned is None:
        there = named(packaged.held or (), observed.packages or {}) if name in desired.absent else []
        return compare_unwanted(name, there, observed)
    return [
        *compare_packages(name, planned.packages, observed),
        *compare_unwanted(name, others(planned, packaged.alone, observed), observed),
        *(compare_running(name, unit, observed.services.get(unit, Service()), True) for unit in packaged.units),
    ]


@dataclass(frozen=True)
class Packaged:
    """A component of the stack that is packages on the host. Patterns are shell patterns.

    name: its field of the stack; label: its name for people; hold: the name of its hold, by which action ``packages`` knows it.
    role: the one whose ``<role>_state`` says whether it is absent, if there is one.

    held: patterns of its packages; None: the plan names them. alone: patterns of packages none of which may lie next to the planned ones.
    unpinning: of what goes, what goes before an installation. units: its services, which nodes tell the state of; unattended: services
    that needrestart leaves alone. compare: what is planned with what is there.
    """

    name: str
    label: str
    hold: str = ""
    role: str = ""
    held: tuple[str, ...] | None = None
    alone: tuple[str, ...] = ()
    unpinning: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    unattended: tuple[str, ...] = ()
    compare: Callable[[Packaged, Desired, Observed], list[Comparison]] = compare_component

    def planned(self, desired: Desired) -> Component | None:
        """Return the component of the stack; None where it is not planned."""
        found: Component | None = getattr(desired.stack, self.name)
        return found

    def hold_of(self, desired: Desired) -> Hold | None:
        """Return the hold of its packages; None where it is not planned."""
        planned, driver = self.planned(desired), desired.stack.driver
        if planned is None:
            return None
        hold = Hold(tuple(self.held or planned.held), services=self.unattended, kept=True)
        if driver is None or planned is not driver:
            return hold
        return replace(
            hold,
            excluded=DRIVER_EXCLUDED,
            module_stream=f"nvidia-driver:{driver.module_stream}" if driver.module_stream else None,
            kernel=desired.hold_kernel or driver.precompiled is not None,
        )

    def comparisons(self, desired: Desired, observed: Observed) -> list[Comparison]:
        """Return a comparison for everything that is planned of it."""
        return self.compare(self, desired, observed)
