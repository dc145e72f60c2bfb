# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that mpirun and horovodrun take for ssh: brings a command to the agent of another node, and its exit code back.

relay.py [OPTION…] HOST [OPTION…] COMMAND…   on the engine's node: connects to HOST by ssh and runs itself there
relay.py                                     there: hands the command, which comes as input, to the agent
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).absolute().parent
SOCKET = "daemon.socket"
PATIENCE = 120.0  # seconds for which the other node's agent may not be there yet
VALUED = ("-i", "-l", "-o", "-p")  # options of ssh that a value follows
# No one answers a question.
SSH = ("ssh", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15")


def main(args: list[str]) -> int:
    """Return the command's exit code, or become ssh."""
    args = without_options(args)
    if not args:
        return hand_over(sys.stdin.buffer.read())
    return become_ssh(args[0], " ".join(without_options(args[1:])))


def become_ssh(host: str, command: str) -> NoReturn:
    """Be ssh, with the command as its input: ending this ends ssh with it, and nothing keeps open what they share."""
    there = shlex.join([sys.executable, str(HERE / "relay.py")])
    with tempfile.TemporaryFile() as text:
        text.write(command.encode())
        text.seek(0)
        os.dup2(text.fileno(), 0)
        os.execvp(SSH[0], [*SSH, host, there])  # noqa: S606 - becoming ssh is the purpose


def without_options(args: list[str]) -> list[str]:
    """Return ARGS from the first on that is not an option of ssh; there is nothing that they could say to relay.py."""
    while args and args[0].startswith("-"):
        args = args[2:] if args[0] in VALUED else args[1:]
    return args


def hand_over(command: bytes) -> int:
    """Give the command to the agent of this node, once it listens, and wait for its exit code."""
    os.chdir(HERE / "logs")
    until = time.monotonic() + PATIENCE
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
        while True:
            try:
                agent.connect(SOCKET)
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > until:
                    sys.exit(f"The agent of this run does not listen on this node after {PATIENCE:.0f} s.")
                time.sleep(0.5)
        agent.sendall(command)
        agent.shutdown(socket.SHUT_WR)
        return int(agent.recv(16) or 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
