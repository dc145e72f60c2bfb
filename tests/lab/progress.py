# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say what is being done, with the time since the command began, and that it goes on."""

import sys
import threading
import time

_START = time.monotonic()
_working = []
EVERY = 60.0  # seconds without a line, after which one says that work goes on


class LabError(Exception):
    """One sentence for the user: what is wrong, the value seen, what to do."""


def say(text):
    """Print one progress line on stderr: `[  1:05] text`. It names what is being done in the block of a Working."""
    _print(text)
    for working in _working:
        working.shown(text)


def _print(text):
    print(f"[{clock(time.monotonic() - _START):>6}] lab: {text}", file=sys.stderr, flush=True)


def clock(seconds):
    """Return seconds as minutes and seconds: 1:05."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


class Working:
    """While its block runs: whenever a minute passes without a line, one says what goes on, and for how long.

    ``at``: what is being done; a line that another part prints counts when it is given to ``shown``.
    """

    def __init__(self, at, every=EVERY):
        self._every, self._end = every, threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self.shown(at)

    def __enter__(self):
        _working.append(self)
        self._thread.start()
        return self

    def __exit__(self, *_error):
        _working.remove(self)
        self._end.set()
        self._thread.join()

    def shown(self, at=None):
        """Take note of a line; at: what is being done from now on, if that is new."""
        self._last = time.monotonic()
        if at is not None:
            self._at, self._since = at, self._last

    def _beat(self):
        while not self._end.wait(max(0.01, self._last + self._every - time.monotonic())):
            now = time.monotonic()
            if now >= self._last + self._every:
                self._last = now
                _print(f"{self._at}: goes on, for {clock(now - self._since)} so far")
