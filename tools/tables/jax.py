# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JAX's rows: one for each release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.jax import Found, new_row
from packaging.version import Version

from .document import styled

# Before it the index had no CUDA: jaxlib 0.4.30 is the first that takes it from the plugins alone.
FIRST = "0.4.30"


def update(rows: list, published: Iterable[str], read: Callable[[str], Found], today: str) -> list[str]:
    """Write rows for the releases without one; return a line for each."""
    said = []
    for version in missing(rows, published):
        made = new_row(read(version), today)
        if made:
            rows.append(styled(made))
        said.append(f"{version}: {'new' if made else 'no row, as its wheels do not tell Python, glibc and libraries'}")
    rows.sort(key=lambda row: Version(row["version"]))
    return said


def missing(rows: Iterable[Mapping], published: Iterable[str]) -> list[str]:
    """Return the published releases that could have a row and have none, oldest first."""
    known = {row["version"] for row in rows}
    return sorted((one for one in set(published) - known if Version(one) >= Version(FIRST)), key=Version)
