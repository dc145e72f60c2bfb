# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On which kernels drivers do not build."""

from __future__ import annotations

import re

from ...tables import Tables
from ...versions import at_least
from .row import KERNELS, Driver, KernelRow


def is_limited(tables: Tables, release: str) -> bool:
    """Return True if some driver does not build on a kernel: all others are one and the same to the resolver."""
    return any(_concerns(row, release) for row in tables.rows(KERNELS))


def limit(tables: Tables, driver: Driver, release: str) -> KernelRow | None:
    """Return the row that says why a driver does not build on a kernel; None where no one has seen that.

    A distribution patches what its own archive has, and a vendor what it installed.
    """
    if driver.row["source"] in ("distribution", "vendor"):
        return None
    return next((row for row in tables.rows(KERNELS) if _names(row, driver) and _concerns(row, release)), None)


def _names(row: KernelRow, driver: Driver) -> bool:
    branch, flavours = driver.row["branch"]["branch"], row["kernel_modules"]
    same = branch == row["branch"] or (row.get("older", False) and branch < row["branch"])
    return same and driver.row["kernel_modules"] in flavours and at_least(row["driver"], driver.version)


def _concerns(row: KernelRow, release: str) -> bool:
    return row.get("contains", "") in release and _numbers(release) >= _numbers(row["kernel"])


def _numbers(release: str) -> list[int]:
    """Return the numbers that a release begins with: 5.14.0-570.12.1.el9_6.x86_64 and 6.8.0-84-generic."""
    found = re.match(r"[\d.-]*", release)
    return [int(part) for part in re.findall(r"\d+", found[0])] if found else []
