# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The slots of a solution by their component."""

from __future__ import annotations

from collections.abc import Mapping

from .model import AnyCandidate, Solution


def on_host(solution: Solution) -> Mapping[str, AnyCandidate]:
    """Return the candidates that a solution puts on the host itself, by component."""
    return {slot.component: one for slot, one in solution.items() if not slot.environment and not one.absent}


def inside(solution: Solution, name: str) -> Mapping[str, AnyCandidate]:
    """Return the candidates that a solution puts in an environment, by component."""
    return {slot.component: one for slot, one in solution.items() if slot.environment == name}
