# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The libraries that the controller has with ansible-core and Python, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from packaging.requirements import Requirement
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.utils import parse_wheel_filename
    from packaging.version import InvalidVersion, Version
except ImportError:
    # ansible-core depends on it; only ansible-test's import check runs without it.
    if not TYPE_CHECKING:
        InvalidSpecifier = InvalidVersion = Exception
        Requirement = SpecifierSet = Version = parse_wheel_filename = None

try:
    import tomllib  # type: ignore[import-not-found, unused-ignore]
except ImportError:  # Python 3.10
    if not TYPE_CHECKING:
        tomllib = None

__all__ = [
    "InvalidSpecifier",
    "InvalidVersion",
    "Requirement",
    "SpecifierSet",
    "Version",
    "parse_wheel_filename",
    "tomllib",
]
