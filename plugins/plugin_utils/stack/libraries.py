# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The library the resolver takes from ansible-core, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version
except ImportError:
    # ansible-core depends on it; only ansible-test's import check runs without it.
    if not TYPE_CHECKING:
        InvalidSpecifier = InvalidVersion = Exception
        SpecifierSet = Version = None

__all__ = ["InvalidSpecifier", "InvalidVersion", "SpecifierSet", "Version"]
