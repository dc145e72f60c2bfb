# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Match installed versions against planned ones: the only place that does."""

from __future__ import annotations

from fnmatch import fnmatchcase

try:
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion
except ImportError:  # ansible-core brings it; only ansible-test imports plugins without it
    pass


def satisfies(installed: str | None, planned: str | None) -> bool:
    """Return True if a package's version is the planned one: None is any, else exact or a shell pattern.

    A Debian or RPM epoch (``1:535.309.01-1``) counts only where the plan names one.
    """
    if installed is None:
        return False
    if planned is None or fnmatchcase(installed, planned):
        return True
    epoch, colon, rest = installed.partition(":")
    if colon and epoch.isdigit() and ":" not in planned:
        return fnmatchcase(rest, planned)
    # rpm says no epoch where it is 0, dnf and plans may.
    return not colon and planned.startswith("0:") and fnmatchcase(installed, planned.removeprefix("0:"))


def python_satisfies(installed: str | None, planned: str) -> bool:
    """Return True if 3.11.2 is a planned 3.11: whole numbers count, so that 3.1 is not 3.11."""
    return f"{installed or ''}.".startswith(f"{planned}.")


def requirement(line: str) -> tuple[str, str] | None:
    """Return (canonical name, specifier) of a requirement line; None for any other line (an option, a URL without name)."""
    try:
        found = Requirement(line)
    except InvalidRequirement:
        return None
    return canonicalize_name(found.name), str(found.specifier)


def meets(installed: str | None, line: str) -> bool:
    """Return True if an installed Python package meets a requirement line; 2.13.0+cpu meets ==2.13.0 (PEP 440)."""
    if installed is None:
        return False
    try:
        return Requirement(line).specifier.contains(installed, prereleases=True)
    except InvalidVersion:
        return False
