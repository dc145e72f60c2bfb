# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TensorFlow's rows: the releases of one minor; which of them have a row, and which get one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.tensorflow import row_beside
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.wheels import Release
from packaging.version import Version

from .document import styled


def update(rows: list, published: Mapping[str, list[str]], read: Callable[[str, list[str]], Release]) -> list[str]:
    """Write the releases of known minors and later ones into the rows; return a line for each change and difference.

    published: each release with the Pythons that it has a wheel for; read: a release as the index has it
    """
    said = []
    first = min(Version(row["version"]) for row in rows)
    for release, pythons in published.items():
        minor = ".".join(release.split(".")[:2])
        known = any(release in row["releases"] for row in rows)
        # A post-release fixes the packaging of the release before it.
        if Version(minor) < first or known or Version(release).is_postrelease:
            continue
        alike = [row for row in rows if row["version"] == minor]
        row = next((row for row in alike if list(row["python"]) == pythons), None)
        if row is not None:
            row["releases"] = styled(sorted([*row["releases"], release], key=Version))
        elif made := row_beside(alike, release, pythons, read):
            rows.append(styled(made))
        else:
            said.append(f"{release}: no row, as its metadata does not tell its CUDA or its glibc")
            continue
        said.append(f"{release}: new")
    rows.sort(key=lambda row: Version(row["releases"][0]))
    return said
