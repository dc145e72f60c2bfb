# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describe a change of packages, made or predicted, and derive the arguments of module package_hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..documents.observed import Hold, Observed
from .plan import PackagePlan, Steps


@dataclass(frozen=True)
class Change:
    """Versions of the packages that move, by name; None for what is not installed."""

    before: Mapping[str, str | None]
    after: Mapping[str, str | None]

    def __bool__(self) -> bool:
        return bool(self.after)

    def result(self) -> dict[str, Any]:
        """Return the change as the action's result has it."""
        return {
            "installed": {name: version for name, version in self.after.items() if version is not None},
            "removed": [name for name, version in self.after.items() if version is None],
        }

    def lines(self) -> tuple[list[str], list[str]]:
        """Return the lines of ``--diff``: packages with their versions before and after."""
        return _lines(self.before), _lines(self.after)


def _lines(versions: Mapping[str, str | None]) -> list[str]:
    return [f"{name} {version}" for name, version in sorted(versions.items()) if version is not None]


def happened(before: Observed, after: Observed) -> Change:
    """Return the packages that changed between two measurements."""
    old = {**dict.fromkeys(before.leftover_packages), **(before.packages or {})}
    new = {**dict.fromkeys(after.leftover_packages), **(after.packages or {})}
    moved = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    return Change({name: old.get(name) for name in moved}, {name: new.get(name) for name in moved})


def predicted(todo: Steps, observed: Observed) -> Change:
    """Return the change that the steps would make; versions are those that the plan names."""
    installed = observed.packages or {}
    after: dict[str, str | None] = {}
    for package in (*todo.first, *todo.install):
        after[package.name] = package.version or "any version"
    after.update(dict.fromkeys(todo.required, "this version"))
    after.update(dict.fromkeys((*todo.unpin, *todo.remove)))
    leftover = dict.fromkeys(observed.leftover_packages, "(configuration)")
    return Change({name: installed.get(name) or leftover.get(name) for name in after}, after)


def is_held(plan: PackagePlan, observed: Observed) -> bool:
    """Return True if the hold was measured as the plan wants it, so that the node need not be asked."""
    if plan.absent:
        return plan.name not in observed.package_holds
    wanted = Hold(tuple(plan.held or ()), plan.excluded, plan.services, plan.module_stream, plan.hold_kernel, kept=True)
    return observed.package_holds.get(plan.name) == wanted


def hold_arguments(plan: PackagePlan, lock_timeout: int) -> dict[str, Any]:
    """Return the arguments of module package_hold after a change: what is there stays together."""
    return {
        **_shared_arguments(plan, lock_timeout),
        "excluded": list(plan.excluded),
        "kernel": plan.hold_kernel,
    }


def release_arguments(plan: PackagePlan, lock_timeout: int) -> dict[str, Any]:
    """Return the arguments of module package_hold before a change: of all that is named, what another plan holds may have to go with it."""
    return {**_shared_arguments(plan, lock_timeout), "state": "released"}


def _shared_arguments(plan: PackagePlan, lock_timeout: int) -> dict[str, Any]:
    stream = {"module_stream": plan.module_stream} if plan.module_stream else {}
    return {
        "name": plan.name,
        "packages": list(plan.held or ()),
        "services": list(plan.services),
        "lock_timeout": lock_timeout,
        **stream,
    }


def not_offered(names: Iterable[str], host: str) -> dict[str, str]:
    """Return the failure of a plan whose required packages no repository has; nothing was installed."""
    remedy = (
        "enable a repository that still has them, such as the distribution's vault or a snapshot of its archive, or install "
        "the newest kernel, restart the host and run this again"
    )
    text = f"no repository of {host} has {', '.join(names)}: {remedy}; nothing was installed"
    return {"cause": "not_offered", "remedy": remedy, "msg": text}


def not_installed(left: Steps, host: str) -> dict[str, str]:
    """Return the failure of a change that ended well and left packages out: removing one may take others with it."""
    names = ", ".join(package.name for package in (*left.first, *left.install))
    remedy = "check whether another repository or program changes packages there, and run this again"
    text = f"{names} should be installed on {host} now but is not: {remedy}"
    return {"cause": "not_installed", "remedy": remedy, "msg": text}
