# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A person at the console of a machine, which is its serial line: the firmware, shim's MokManager, GRUB and the kernel read it."""

from __future__ import annotations

import re
import socket
import time
from types import TracebackType

from ..progress import LabError
from .qemu import Machine

DOWN, ENTER = "\x1b[B", "\r"
# What MokManager draws, and what to type then: https://github.com/rhboot/shim/blob/main/MokManager.c. It repeats each key's menu.
ENROLMENT = (
    ("Press any key to perform MOK management", ENTER),
    ("Enroll MOK", DOWN + ENTER),
    ("View key 0", DOWN + ENTER),
    ("Enroll the key", DOWN + ENTER),
    ("Password:", "{password}" + ENTER),
    ("Reboot", ENTER),
)
# Seconds that a menu is given to read the keyboard after it was drawn.
SETTLE = 1.0
ESCAPES = re.compile(r"\x1b\[[0-9;=]*[A-Za-z]")


class Console:
    """The console while somebody sits at it; nobody else can."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.seen = ""  # since the last key
        self._line = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> Console:
        self._line.connect(str(self.machine.directory / "console.sock"))
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._line.close()

    def wait_for(self, words: str, seconds: float = 300) -> None:
        """Read until the machine has written these words since the last key."""
        deadline = time.monotonic() + seconds
        while words not in self.seen:
            self._line.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                written = self._line.recv(65536)
            except TimeoutError:
                written = b""
            if not written:
                said = " ".join(self.seen.split())[-300:] or "nothing"
                raise LabError(f"{self.machine.name} did not write {words!r} within {seconds:.0f} s, but: {said}")
            self.seen = ESCAPES.sub("", self.seen + written.decode(errors="replace"))

    def press(self, keys: str) -> None:
        """Type these keys; what is on the screen by then is forgotten."""
        self.seen = ""
        self._line.sendall(keys.encode())


def enrol(console: Console, password: str) -> None:
    """Confirm the keys that mokutil asked to enrol, at the next boot of the machine, which then boots once more."""
    for words, keys in ENROLMENT:
        console.wait_for(words)
        time.sleep(SETTLE)
        console.press(keys.format(password=password))
