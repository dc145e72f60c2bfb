# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a node, in the training environment: horovodrun on the first node, its ranks on every other.

horovodrun runs each rank of another node as a command of ssh. Here that is relay.py, so that the rank belongs to the unit of its
node. Run as a program, this is horovodrun itself with relay.py for its ssh.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

with contextlib.suppress(ImportError):  # only ansible-test's import check runs without it
    from commands import GRACE, LOGS, ended, interrupted, listen, read_all, run_to_end

HERE = Path(__file__).absolute().parent
# horovodrun shows the variables of its own environment to every user of the nodes, in command lines; rank.py adds the run's.
INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "USER")


def horovodrun(launch: dict, ranks_per_node: Callable[[str], int]) -> dict:
    """Run this node's part to its end."""
    signal.signal(signal.SIGTERM, interrupted)
    try:
        return first(launch, ranks_per_node(launch["nproc_per_node"])) if launch["is_first"] else other()
    except InterruptedError as error:
        return ended(str(error))


def first(launch: dict, nproc: int) -> dict:
    """Run horovodrun, with as many ranks on every node as this one is asked for, or has GPUs."""
    addresses = launch["addresses"]
    hosts = ",".join(f"{address}:{nproc}" for address in addresses)
    argv = [sys.executable, str(HERE / "horovodrun.py"), "-np", str(nproc * len(addresses)), "-H", hosts]
    interface = launch["variables"].get("GLOO_SOCKET_IFNAME")
    if interface and len(addresses) > 1:  # on one node, it takes the loopback interface and no other
        argv += ["--network-interfaces", interface]
    argv += [*launch["arguments"], sys.executable, str(HERE / "rank.py"), launch["script"], *launch["args"]]
    code = run_to_end(argv, {name: os.environ[name] for name in INHERITED if name in os.environ})
    return ended(f"exit code {code}" if code else None)


def other() -> dict:
    """Run the commands that come, until all ranks of this node have ended."""
    threads: list[threading.Thread] = []
    try:
        with listen() as server:
            while not all_ended():
                if select.select([server], [], [], 0.5)[0]:
                    threads.append(threading.Thread(target=serve, args=(server.accept()[0],), daemon=True))
                    threads[-1].start()
    finally:
        # Ranks that systemd ends as well have the time to note it, and the others' exit codes to reach horovodrun.
        until = time.monotonic() + GRACE
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
    return ended(None)


def serve(peer: socket.socket) -> None:
    """Run one command, and answer with its exit code."""
    with peer:
        command = read_all(peer)
        code = subprocess.run(["/bin/sh", "-c", command], check=False).returncode
        with contextlib.suppress(OSError):
            peer.sendall(str(code if code >= 0 else 128 - code).encode())


def all_ended() -> bool:
    """Return True if as many ranks have ended as horovodrun said that this node has."""
    notes = [json.loads(path.read_text(encoding="utf-8")) for path in LOGS.glob("rank*.end.json")]
    return bool(notes) and len(notes) >= notes[0]["local_world_size"]


def main() -> None:
    """Be horovodrun."""
    from horovod.runner import launch
    from horovod.runner.util import remote

    if not getattr(remote, "SSH_COMMAND_PREFIX", "").startswith("ssh "):
        sys.exit("This version of Horovod does not start ranks by ssh as 0.28 does.")
    remote.SSH_COMMAND_PREFIX = f"{sys.executable} {HERE / 'relay.py'}"
    launch.run_commandline()


if __name__ == "__main__":
    main()
