# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver that another owner is in charge of: it is taken as it is, and everything else is planned around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...model import Candidate, Gpu, Owner
from ...rows import BranchRow
from ...tables import Tables
from ...versions import major, matches
from .row import Driver, DriverRow

VENDOR = "vendor"


def find_owner(given: Mapping[str, Any], gpus: Iterable[Gpu], asked: bool) -> Owner | None:
    """Return the owner of a host's driver; None where that is this collection.

    asked: whether the request leaves the driver to its installer
    """
    if given.get("take_charge"):
        return None
    measured = given.get("driver_owner") or {}
    name = measured.get("name")
    if not name and any(gpu.row.get("vgpu") for gpu in gpus):
        name = "the vGPU software of the hypervisor"
    if not name and asked:
        name = "whoever installed it"
    installed = given.get("installed_driver") or {}
    return Owner(name, installed.get("version"), installed.get("kernel_modules")) if name else None


def left_drivers(tables: Tables, owner: Owner, constraints: Mapping[str, str]) -> list[Driver]:
    """Return the driver that is installed, if the constraints allow it."""
    version = owner.version
    branch = _branch(tables, int(major(version))) if version else None
    if version is None or branch is None or not matches(version, constraints.get("driver", "latest")):
        return []
    flavour = next(
        (one for one in branch["kernel_modules"] if one == owner.kernel_modules), branch["kernel_modules"][0]
    )
    if constraints.get("driver_source", VENDOR) != VENDOR or constraints.get("kernel_modules", flavour) != flavour:
        return []
    row: DriverRow = {"branch": branch, "source": "vendor", "kernel_modules": flavour}
    return [Candidate("driver", version, f"{owner.name}, {flavour} modules", row)]


def _branch(tables: Tables, number: int) -> BranchRow | None:
    """Return the row of a branch; one that the tables do not know is as the one before it."""
    older = [row for row in tables.rows("drivers") if row["branch"] <= number]
    return {**older[-1], "branch": number} if older else None
