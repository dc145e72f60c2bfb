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
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

with contextlib.suppress(ImportError):  # only ansible-test's import check runs without it
    from commands import GRACE, ended, interrupted, listen, read_all, run_to_end

HERE = Path(__file__).absolute().parent
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


def mpirun(launch: dict, ranks_per_node: Callable[[str], int]) -> dict:
    """Run this node's part to its end."""
    signal.signal(signal.SIGTERM, interrupted)
    try:
        return first(launch, ranks_per_node(launch["nproc_per_node"])) if launch["is_first"] else other()
    except InterruptedError as error:
        return ended(str(error))


def first(launch: dict, nproc: int) -> dict:
    """Run mpirun, with as many ranks on every node as this one is asked for, or has GPUs."""
    hosts = HERE / "logs" / "hostfile"
    hosts.write_text("".join(f"{address} slots={nproc}\n" for address in launch["addresses"]), encoding="utf-8")
    program = next(path for path in launch["programs"] if os.access(path, os.X_OK))
    argv = [program, "--hostfile", str(hosts), "-np", str(nproc * len(launch["addresses"])), *launch["arguments"]]
    argv += [sys.executable, str(HERE / "rank.py"), launch["script"], *launch["args"]]
    relay = f"{sys.executable} {HERE / 'relay.py'}"
    # Open MPI 5 starts its daemons by PRRTE, which has names of its own.
    names = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent", "PRTE_MCA_plm_rsh_agent")
    # Ended, it ends its daemons, and they their ranks.
    code = run_to_end(argv, {**os.environ, **dict.fromkeys(names, relay)})
    return ended(f"exit code {code}" if code else None)


def other() -> dict:
    """Wait for the daemon's command, run it, and stay until nothing of it is left: the daemon leaves its parent."""
    ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0)
    with listen() as server:
        peer = server.accept()[0]
    with peer:
        command = read_all(peer)
        code = subprocess.run(["/bin/sh", "-c", command], check=False).returncode
        with contextlib.suppress(OSError):
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
