# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks that run at this moment, one for each host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A host, the task that runs there, and for how many seconds it has run."""

    host: str
    task: str
    seconds: float


class Running:
    """The running tasks and their start times, in seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[str, float]] = {}

    def start(self, host: str, task: str, now: float) -> None:
        """Record that a task begins on a host; a host runs one at a time."""
        self._tasks[host] = (task, now)

    def end(self, host: str) -> None:
        """Record that the host's task has ended, in whatever way."""
        self._tasks.pop(host, None)

    def clear(self) -> None:
        """Forget all tasks."""
        self._tasks.clear()

    def longer_than(self, threshold: float, now: float) -> list[Row]:
        """Return the tasks that have run for at least the given seconds, the longest first."""
        rows = [Row(host, task, now - began) for host, (task, began) in self._tasks.items() if now - began >= threshold]
        return sorted(rows, key=lambda row: (-row.seconds, row.host))
