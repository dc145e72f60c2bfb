# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A thread that shows long tasks while Ansible works. Whatever fails here ends the status and nothing else."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

from .lines import status_lines
from .running import Running
from .screen import Screen

# Width of lines where there is no terminal.
COLUMNS = 80


def has_descriptor(stream: TextIO) -> bool:
    """Return True if the stream has a descriptor to write to; those of tests and wrappers may have none."""
    try:
        return stream.fileno() >= 0
    except (AttributeError, OSError, ValueError):
        return False


def can_show(stream: TextIO, term: str) -> bool:
    """Return True if the stream is a terminal that moves its cursor."""
    return term not in ("", "dumb") and has_descriptor(stream) and os.isatty(stream.fileno())


class Painter:
    """Shows what has run for ``threshold`` seconds, every ``interval`` seconds, for at most ``hosts`` hosts.

    It writes to the descriptor, as a lock of the stream that a thread holds during a fork would stay locked in the child.
    """

    def __init__(self, stream: TextIO, threshold: float, interval: float, hosts: int) -> None:
        self._terminal, self._encoding = stream.fileno(), stream.encoding or "utf-8"
        self._threshold, self._interval, self._hosts = threshold, max(interval, 0.1), hosts
        self._running, self._screen = Running(), Screen()
        self._lock = threading.Lock()
        self._ended: threading.Event | None = None
        self._broken = False
        self._process = os.getpid()
        atexit.register(self.stop)  # after an interrupt, too

    def start(self, host: str, task: str) -> None:
        """Record that a task begins on a host, and show it when it turns out to be long."""
        with self._lock:
            self._running.start(host, task, time.monotonic())
            if self._ended is None and not self._broken:
                self._ended = threading.Event()
                threading.Thread(target=self._paint, args=(self._ended,), daemon=True).start()

    def end(self, host: str) -> None:
        """Record that the task of a host has ended."""
        with self._lock:
            self._running.end(host)

    def stop(self) -> None:
        """Give the terminal back; a task that begins later starts again."""
        with self._lock:
            if self._ended is None or os.getpid() != self._process:
                return
            self._ended.set()
            self._ended = None
            self._running.clear()
            self._guard(self._screen.release)

    def _paint(self, ended: threading.Event) -> None:
        while not ended.wait(self._interval):
            with self._lock:
                if ended.is_set() or self._broken:
                    return
                self._guard(self._frame)

    def _frame(self) -> str:
        columns, rows = os.get_terminal_size(self._terminal)
        long = self._running.longer_than(self._threshold, time.monotonic())
        # Two thirds of the terminal stay with Ansible's output.
        return self._screen.show(status_lines(long, columns, min(self._hosts, rows // 3)), rows)

    def _guard(self, text: Callable[[], str]) -> None:
        try:
            os.write(self._terminal, text().encode(self._encoding, "replace"))
        except Exception:
            self._broken = True


class Reporter(Painter):
    """Prints lines about long tasks where no terminal keeps rows for them, after ``silence`` seconds without other output."""

    def __init__(self, stream: TextIO, silence: float, interval: float, hosts: int) -> None:
        self._silence, self._told = silence, time.monotonic()
        super().__init__(stream, 0, interval, hosts)

    def listen(self, display: Any) -> None:
        """Count what Ansible prints as output: its own lines, and those of actions, which its processes hand on."""
        plain = display.display

        def heard(*args: Any, **kwargs: Any) -> None:
            self._told = time.monotonic()
            plain(*args, **kwargs)

        display.display = heard

    def _frame(self) -> str:
        now = time.monotonic()
        if now - self._told < self._silence:
            return ""
        self._told = now
        lines = status_lines(self._running.longer_than(0, now), COLUMNS, self._hosts)
        return "".join(f"{line}\n" for line in lines)
