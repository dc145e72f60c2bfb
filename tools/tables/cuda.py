# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Toolkits: the package index has a package of wheels for each release, which tells neither its driver nor where it is published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.version import Version

PACKAGE = "cuda-toolkit"


def missing(rows: Iterable[Mapping], skipped: Iterable[str], published: Iterable[str]) -> list[str]:
    """Return the published releases that no row has, oldest first; those of minors before all rows are left out on purpose."""
    rows = list(rows)
    known = {update for row in rows for update in row["updates"]} | set(skipped)
    first = min(Version(row["version"]) for row in rows)
    found = {".".join(release.split(".")[:3]) for release in published}
    return sorted((one for one in found - known if Version(one) >= first), key=Version)
