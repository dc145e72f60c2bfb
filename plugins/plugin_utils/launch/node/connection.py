# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections of allreduce-run: each node's serve.py, as a child on this node and through ssh on the others."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

HERE = Path(__file__).absolute().parent
SSH = [
    "ssh",
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
]


class Node:
    """The connection to one node; what it says goes into a queue as (name, message), at its end one of kind gone."""

    def __init__(self, name: str, address: str, first: bytes, messages: queue.Queue):
        self.name, self.messages = name, messages
        program = [sys.executable, str(HERE / "serve.py")]
        argv = program if is_own(address) else [*SSH, address, *program]
        # Ctrl-C in the terminal is for this program only, which then ends them in order.
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self.stdin, self.stdout, self.stderr = pipes(self.process)
        self.asked = time.time()
        # Each in its own time: a node that takes nothing holds nobody up.
        threading.Thread(target=self.write, args=(first,), daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()

    def write(self, data: bytes) -> None:
        """Send something; a node that is gone says so itself."""
        with contextlib.suppress(OSError, ValueError):
            self.stdin.write(data)
            self.stdin.flush()

    def stop(self) -> None:
        """End the node's part of the run."""
        with contextlib.suppress(OSError):
            self.stdin.close()

    def _listen(self) -> None:
        for line in self.stdout:
            self.messages.put((self.name, json.loads(line)))
        said = self.stderr.read().decode(errors="replace").strip()
        self.messages.put(
            (self.name, {"kind": "gone", "why": said.splitlines()[-1] if said else f"status {self.process.wait()}"})
        )


def pipes(process: subprocess.Popen) -> tuple[IO[bytes], ...]:
    """Return the ends of a process' input, output and errors that are on this side."""
    return tuple(one for one in (process.stdin, process.stdout, process.stderr) if one)


def is_own(address: str) -> bool:
    """Return whether an address is one of this machine."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True
