# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a node, as a part of the agent: takes what an engine starts by a remote shell, and tells how ranks ended."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from pathlib import Path

HERE = Path(__file__).absolute().parent
LOGS = HERE / "logs"
SOCKET = "daemon.socket"  # in LOGS, the one directory where the user may make one
GRACE = 12.0  # seconds from SIGTERM on, shorter than systemd's patience (systemd_unit.py)


def interrupted(number: int, dummy: object) -> None:
    """Handle a signal by an exception; raise InterruptedError."""
    raise InterruptedError(f"signal {number}")


def run_to_end(argv: list[str], environment: dict[str, str]) -> int:
    """Run an engine and return its exit code; end it where this process is interrupted."""
    child = subprocess.Popen(argv, env=environment)
    try:
        return child.wait()
    except InterruptedError:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
        raise


def listen() -> socket.socket:
    """Return a socket that only this user reaches. Its path is relative, as its length is limited."""
    os.chdir(LOGS)
    Path(SOCKET).unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(SOCKET)
    os.chdir(HERE / "work")
    server.listen(socket.SOMAXCONN)
    return server


def read_all(peer: socket.socket) -> str:
    """Return the text that the other side sends until it says that this was all."""
    parts = []
    while part := peer.recv(65536):
        parts.append(part)
    return b"".join(parts).decode()


def ended(error: str | None) -> dict:
    """Return the failures among this node's ranks, as rank.py noted them; the error only where none explains it."""
    notes = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(LOGS.glob("rank*.end.json"))]
    shown = ("rank", "local_rank", "exit_code", "time")
    failures = [{**{key: note[key] for key in shown}, "message": ""} for note in notes if note["exit_code"]]
    if not error and len(notes) < len(list(LOGS.glob("rank*.out"))):
        error = "some ranks left no record of how they ended"
    if not error and not notes:
        error = "no rank on this node"
    return {"failures": failures, "error": None if failures else error}
