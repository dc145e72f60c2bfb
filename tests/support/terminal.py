# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program in a terminal: what a user sees while it runs, and what is left on the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import time

import pyte


class Terminal:
    """A program that runs in a terminal of a size, and the screen of that terminal."""

    def __init__(self, argv, rows=24, columns=80, **options):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen = pyte.HistoryScreen(columns, rows, history=1000)
        self._stream = pyte.ByteStream(self.screen)
        self.written = b""
        # A session of its own, whose terminal this is: Ctrl-C reaches it as a user's does.
        self._process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=_control, **options
        )
        os.close(slave)

    def rows(self):
        """Rows of the screen at this moment."""
        return [row.rstrip() for row in self.screen.display]

    def lines(self):
        """All rows since the beginning that are not empty, those that were scrolled away first."""
        past = ["".join(row[column].data for column in range(self.screen.columns)) for row in self.screen.history.top]
        return [row.rstrip() for row in past + self.rows() if row.strip()]

    def wait_for(self, seen, seconds=60):
        """Read until SEEN, a function of the rows, is true; AssertionError when the program ends first or time is up."""
        deadline = time.monotonic() + seconds
        while not seen(self.rows()):
            assert self._read() and time.monotonic() < deadline, "\n".join(self.lines())

    def press(self, keys):
        """Type, such as ``\\x03`` for Ctrl-C."""
        os.write(self._master, keys.encode())

    def finish(self):
        """Read until the program ends; its exit status."""
        while self._read():
            pass
        os.close(self._master)
        return self._process.wait(timeout=60)

    def _read(self):
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how Linux tells that nobody has the terminal open any more
            return False
        self.written += data
        self._stream.feed(data)
        return bool(data)


def _control():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
