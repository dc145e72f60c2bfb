# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of another driver is installed and must go before a planned one comes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

# A driver's version, after an epoch: 3:535.183.06-1.el8, but not 1.1.9-2, 20220217+3 or 2025.06.5-1.
DRIVER_VERSION = re.compile(r"(?:\d+:)?(\d{3})\.\d")
# A branch in a name, as in nvidia-utils-535 and linux-modules-nvidia-535-server-generic.
NAMED_BRANCH = re.compile(r"-(\d{3})(?=-|$)")


def superseded_packages(driver: Mapping[str, Any], installed: Mapping[str, str]) -> list[str]:
    """Names of installed packages of other branches, the other kernel modules or another source than the planned driver's.

    Packages that the plan wants under the same name are not among them: they are upgraded or downgraded.
    """
    wanted = {package["name"] for part in ("packages", "pinning_packages") for package in driver[part]}
    return sorted(
        name for name, version in installed.items() if name not in wanted and _superseded(driver, name, version)
    )


def _superseded(driver: Mapping[str, Any], name: str, version: str) -> bool:
    if not _matches(name, driver["held"]):
        return False
    branches = {found[1] for found in (NAMED_BRANCH.search(name), DRIVER_VERSION.match(version)) if found}
    return bool(branches - {driver["branch"]}) or _matches(name, driver["conflicting"])


def _matches(name: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
