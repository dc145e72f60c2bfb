# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What packages a host lacks, and which of a kind it has. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from fnmatch import fnmatchcase


def missing(wanted: list, installed: dict[str, str], joint: str = "=") -> list[str]:
    """Package manager arguments (``name`` or ``name=version``) for what ``installed`` does not satisfy.

    ``wanted`` holds names or ``{name, version}``; a version may be an fnmatch pattern or null (any will do). apt joins
    name and version with ``=``, dnf with ``-``.
    """
    specs = []
    for package in wanted:
        name, version = (package, None) if isinstance(package, str) else (package["name"], package.get("version"))
        if name in installed and fnmatchcase(installed[name], version or "*"):
            continue
        specs.append(f"{name}{joint}{version}" if version else name)
    return specs


def pins(patterns: list[str], installed: dict[str, str], excluded: list[str] | None = None) -> list[dict]:
    """``[{version, packages}]``: installed packages that a pattern names and no excluded one, by exact version."""

    def named(name: str, by: list[str]) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in by)

    groups = defaultdict(list)
    for name, version in installed.items():
        if named(name, patterns) and not named(name, excluded or []):
            groups[version].append(name)
    return [{"version": version, "packages": sorted(groups[version])} for version in sorted(groups)]
