# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Types for the words that the node's side uses for disks and mounts."""

from __future__ import annotations

from collections.abc import Iterable

from ....module_utils.storage import describe, plan
from ...documents.scratch import Sighting


def sentence(one: Sighting) -> str:
    """Return the sighting, in words."""
    return str(describe.describe({"code": one.code, "subject": one.subject, "detail": one.detail}))


def why_left(code: str) -> str:
    """Return in words why a node gets no scratch; the code itself where a newer node says one."""
    return str(describe.LEFT.get(code, code))


def shown_options(options: Iterable[str]) -> list[str]:
    """Return those options of a mount that a mounted file system shows."""
    return list(plan.kernel_options(options))
