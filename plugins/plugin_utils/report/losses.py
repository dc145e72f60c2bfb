# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loss over the time of the newest runs, drawn."""

from __future__ import annotations

from collections.abc import Iterable

from ..problems.phrases import plural, quantity
from .courses import Picture
from .model import Run

MOST = 6  # runs that are drawn


def pictures(runs: Iterable[Run]) -> list[Picture]:
    """Draw the loss of the newest run of each script and size that left some."""
    return [_picture(run) for run in runs if run.counts and len(run.losses) > 1][:MOST]


def _picture(run: Run) -> Picture:
    low, high, last = min(run.losses), max(run.losses), len(run.losses) - 1
    span = (high - low) or 1.0
    points = (f"{100 * at / last:.2f},{100 - 100 * (loss - low) / span:.1f}" for at, loss in enumerate(run.losses))
    return Picture(
        title=f"{run.script} on {plural(len(run.nodes), 'node')}",
        text=f"from {quantity(run.losses[0])} to {quantity(run.losses[-1])}",
        top=quantity(high),
        bottom=quantity(low),
        band="",
        line=" ".join(points),
    )
