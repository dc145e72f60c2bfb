# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that tell which tasks run and for how long."""

from __future__ import annotations

from collections.abc import Sequence

from .running import Row


def elapsed(seconds: float) -> str:
    """Return a duration in its two largest units: 45s, 1m 05s, 2h 03m."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02}m"
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


def status_lines(rows: Sequence[Row], columns: int, most: int) -> list[str]:
    """Return one line of at most ``columns`` characters for each row; where there are more than ``most``, the last one counts them."""
    shown = rows if len(rows) <= most else rows[: max(most - 1, 0)]
    times = [elapsed(row.seconds) for row in shown]
    host = max((len(row.host) for row in shown), default=0)
    time = max(map(len, times), default=0)
    lines = [f"{row.host:{host}}  {spent:>{time}}  {row.task}" for row, spent in zip(shown, times, strict=True)]
    if most > 0 and len(rows) > most:
        lines.append(f"{len(rows) - len(shown)} {'more ' if shown else ''}hosts at work")
    return [_fit(line, columns) for line in lines]


def _fit(line: str, columns: int) -> str:
    """Return a line that is no wider, and moves no cursor."""
    line = "".join(char if char.isprintable() else " " for char in line)
    return line if len(line) <= columns else line[: max(columns - 3, 0)] + "..."[:columns]
