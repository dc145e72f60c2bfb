# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a node, in the training environment: mpirun on the first node, and its daemon on every other.

mpirun starts a daemon on each node through a program that it takes for a remote shell; that is relay.py, which hands the
daemon's command to the agent on that node. So the daemon and its ranks belong to the node's unit, with its limits and
its lease, and not to a session of sshd that outlives the unit.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).absolute().parent
LOGS = HERE / "logs"
SOCKET = "daemon.socket"  # in LOGS, the one directory where the user may make one
GRACE = 12.0  # seconds from SIGTERM on, shorter than systemd's patience (systemd_unit.py)
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


def mpirun(launch: dict) -> dict:
    """Run this node's part to its end."""
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        return first(launch) if launch["is_first"] else other()
    except InterruptedError as error:
        return ended(str(error))


def _interrupted(number: int, dummy: object) -> None:
    raise InterruptedError(f"signal {number}")


def first(launch: dict) -> dict:
    """Run mpirun, with as many ranks on every node as this one is asked for, or has GPUs."""
    from agent import ranks_per_node

    nproc = ranks_per_node(launch["nproc_per_node"])
    hosts = HERE / "logs" / "hostfile"
    hosts.write_text("".join(f"{address} slots={nproc}\n" for address in launch["addresses"]), encoding="utf-8")
    program = next(path for path in launch["programs"] if os.access(path, os.X_OK))
    argv = [program, "--hostfile", str(hosts), "-np", str(nproc * len(launch["addresses"])), *launch["arguments"]]
    argv += [sys.executable, str(HERE / "rank.py"), launch["script"], *launch["args"]]
    relay = f"{sys.executable} {HERE / 'relay.py'}"
    # Open MPI 5 starts its daemons by PRRTE, which has names of its own.
    names = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent", "PRTE_MCA_plm_rsh_agent")
    child = subprocess.Popen(argv, env={**os.environ, **dict.fromkeys(names, relay)})
    try:
        code = child.wait()
    except InterruptedError:
        child.terminate()  # it ends its daemons, and they their ranks
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
        raise
    return ended(f"exit code {code}" if code else None)


def other() -> dict:
    """Wait for the daemon's command, run it, and stay until nothing of it is left: the daemon leaves its parent."""
    ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0)
    with listen() as server:
        peer = server.accept()[0]
    with peer:
        command = read_all(peer)
        code = subprocess.run(["/bin/sh", "-c", command], check=False).returncode
        peer.sendall(str(code).encode())
    try:
        while True:
            os.wait()
    except InterruptedError as error:
        linger()
        return ended(str(error))
    except ChildProcessError:
        return ended(f"exit code {code} of the daemon" if code else None)


def linger() -> None:
    """Let the daemon end its ranks, so that it is known how they ended."""
    until = time.monotonic() + GRACE
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < until:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.1)


def listen() -> socket.socket:
    """Return a socket that only this user reaches. Its path is relative, as its length is limited."""
    os.chdir(LOGS)
    Path(SOCKET).unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(SOCKET)
    os.chdir(HERE / "work")
    server.listen(1)
    return server


def read_all(peer: socket.socket) -> str:
    """Return what the other side sends until it says that this was all."""
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
