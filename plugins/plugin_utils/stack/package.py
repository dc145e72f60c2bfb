# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A package as a stack names it."""

from __future__ import annotations

from typing import TypedDict


class Package(TypedDict):
    """A package to install; version: a version, a pattern of versions, or None for any."""

    name: str
    version: str | None
