# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell whether the keys of all nodes can be replaced now. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..problems.problem import Problem


def rotation_problems(rotation: str, absent: Collection[str], kept: Mapping[str, Mapping[str, Any]]) -> list[Problem]:
    """Return the problems that prevent a rotation.

    absent: names of nodes that take no part; kept: what module ssh_keys returned for the others. A node that was away would
    take the old keys of all, and none of the new ones.
    """
    if absent and not all(one.get("rotated", True) for one in kept.values()):
        return [Problem("partial_rotation", rotation, {"absent": sorted(absent)})]
    return []
