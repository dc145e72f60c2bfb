# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what Slurm is told on a node with what was measured of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...documents.comparison import Comparison, Remedy, Status, compared
from .lines import GRES

COMPONENT = "slurm"


def compare_lines(desired: Mapping[str, Sequence[str]], found: Mapping[str, Sequence[str] | None]) -> list[Comparison]:
    """Return a comparison for each file: its lines about the node, without the node's name, in any order."""
    return [_compared(file, lines, found.get(file)) for file, lines in desired.items()]


def _compared(file: str, desired: Sequence[str], found: Sequence[str] | None) -> Comparison:
    seen = None if found is None else _shown(found)
    return compared(
        COMPONENT, file, _shown(desired), seen, sorted(found or ()) == sorted(desired), Remedy.RECONFIGURE, _kind(file)
    )


def _kind(file: str) -> str:
    return "gpus" if file == GRES else "node"


def _shown(lines: Sequence[str]) -> str:
    return "; ".join(lines) or "no line"


def compare_refused(sentence: str) -> list[Comparison]:
    """Return what differs on a node that cannot be described to Slurm."""
    return [compared(COMPONENT, GRES, "as measured", sentence, False, Remedy.DECLARE, "gpus")]


def compare_unmeasured() -> list[Comparison]:
    """Return the one comparison of a node that is Slurm's and was not looked at."""
    return [compared(COMPONENT, GRES, "as measured", None, None, Remedy.MEASURE, "gpus")]


def compare_unwanted(recorded: bool) -> list[Comparison]:
    """Return what differs on a host that is not Slurm's: that it still has files for it."""
    if not recorded:
        return []
    return [Comparison(COMPONENT, GRES, "as it was", "ours", Status.UNWANTED, Remedy.APPLY, "gpus")]
