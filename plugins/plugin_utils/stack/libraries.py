# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two libraries the resolver takes from ansible-core, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version
    from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver
except ImportError:
    # ansible-core depends on both; only ansible-test's import check runs without them.
    if not TYPE_CHECKING:
        InvalidSpecifier = InvalidVersion = ResolutionImpossible = Exception
        SpecifierSet = Version = BaseReporter = Resolver = None
        AbstractProvider = object

__all__ = [
    "AbstractProvider",
    "BaseReporter",
    "InvalidSpecifier",
    "InvalidVersion",
    "ResolutionImpossible",
    "Resolver",
    "SpecifierSet",
    "Version",
]
