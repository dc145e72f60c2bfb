# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of frameworks that stand on PyTorch: one for each release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.extensions import Found, Package, new_row
from packaging.version import Version

from .document import styled


def missing(rows: Iterable[Mapping], published: Iterable[str], package: Package) -> list[str]:
    """Return the published releases that could have a row and have none, oldest first."""
    known = {row["version"] for row in rows}
    return sorted((one for one in set(published) - known if Version(one) >= Version(package.first)), key=Version)


def update(
    rows: list, published: Iterable[str], read: Callable[[str], Found], package: Package, today: str
) -> list[str]:
    """Write rows for the releases without one; return a line for each."""
    said = []
    for version in missing(rows, published, package):
        made = new_row(read(version), package, today)
        if made:
            rows.append(styled(made))
        said.append(f"{version}: {'new' if made else 'no row, as it has no wheels for Linux, or names no PyTorch'}")
    rows.sort(key=lambda row: Version(row["version"]))
    return said
