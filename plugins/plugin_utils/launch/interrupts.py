# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turn the signals that end a worker of Ansible into one exception, so that it can clean up first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """The run is to end now. No Exception, so that nothing on the way takes it for an error of its own."""


class Interrupts:
    """Raises Interrupted, once, in the block it guards; signals after the first are ignored.

    A worker is in a session of its own: a killed ansible-playbook sends it no signal, so check() also looks
    whether the parent process is still there.
    """

    def __init__(self) -> None:
        self._parent = os.getppid()
        self.received: int | None = None
        self._deferring = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        # Signal handlers can be set in the main thread only, where every current strategy runs its actions.
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(self, *dummy: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Let the block finish before the exception is raised."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False
            if self.received is not None:  # also in place of an error of the block's
                raise Interrupted

    def check(self) -> None:
        """Raise Interrupted when the controlling process has gone."""
        if os.getppid() != self._parent and self.received is None:
            self.received = 0
            raise Interrupted

    def deliver(self) -> None:
        """Do what the signal would have done without us, after cleaning up and leaving the block."""
        if self.received:
            os.kill(os.getpid(), self.received)

    def _handle(self, number: int, dummy: object) -> None:
        if self.received is None:
            self.received = number
            if not self._deferring:
                raise Interrupted
