# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CuPy's rows: the releases of one series whose wheels are for the same Pythons, by package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.cupy import new_row
from packaging.version import Version

from .document import styled

# By package: its releases, each with the Pythons that it has a wheel for.
Published = Mapping[str, Mapping[str, list[str]]]


def update(rows: list, published: Published, numpy: Callable[[str, str], str | None]) -> list[str]:
    """Write the releases of known series and later ones into the rows; return a line for each change.

    numpy: what a package's release requires of NumPy
    """
    said = []
    first = min(row["series"] for row in rows)
    for package, releases in published.items():
        for release, pythons in releases.items():
            if Version(release).major < first:
                continue
            row = _row_of(rows, package, release)
            if row is not None and list(row["python"]) == pythons:
                continue
            if row is not None:
                row["wheels"][package].remove(release)
            made = _put(rows, package, release, pythons, numpy)
            said.append(
                f"{package} {release}: {'new' if row is None else 'wheels'} for Python {' '.join(pythons)}{made}"
            )
    rows[:] = [row for row in rows if _without_empty(row)]
    rows.sort(key=lambda row: (row["series"], min(Version(one) for found in row["wheels"].values() for one in found)))
    return said


def _row_of(rows: Iterable[Any], package: str, release: str) -> Any:
    return next((row for row in rows if release in row["wheels"].get(package, ())), None)


def _put(rows: list, package: str, release: str, pythons: list[str], numpy: Callable[[str, str], str | None]) -> str:
    """Add a release to the row of its series and Pythons, or to a new one; return what to say of a new series."""
    series = Version(release).major
    alike = [row for row in rows if row["series"] == series]
    row = next((row for row in alike if list(row["python"]) == pythons), None)
    if row is None:
        row = styled(new_row(series, pythons, alike, None if alike else numpy(package, release)))
        rows.append(row)
    found = [*row["wheels"].get(package, ()), release]
    row["wheels"][package] = styled(sorted(found, key=Version))
    return "" if alike else ", a new series; which GPUs it supports is not known"


def _without_empty(row: Any) -> bool:
    """Drop packages without a release; return whether the row still has any."""
    for package in [package for package, releases in row["wheels"].items() if not releases]:
        del row["wheels"][package]
    return bool(row["wheels"])
