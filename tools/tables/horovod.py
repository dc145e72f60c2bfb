# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Horovod's rows are written by hand, as what a release compiles with is tried, not told: which releases have none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.version import Version


def missing(rows: Iterable[Mapping], published: Iterable[str]) -> list[str]:
    """Return the published releases that are newer than every row; older ones are left out on purpose."""
    newest = max(Version(row["version"]) for row in rows)
    return [one for one in published if Version(one) > newest]
