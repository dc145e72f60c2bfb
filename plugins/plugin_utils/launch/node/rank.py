# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a node as what an engine starts for each rank: names the logs after the rank, then becomes the script.

torchrun names its logs after the local rank of an attempt; only a started rank knows which rank of the run it is.
Under torchrun the script replaces this process, so that it runs exactly as under torchrun itself. mpirun and horovodrun do not tell
how each rank ended: there the script is a child, whose end is noted.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).absolute().parent
LOGS = HERE / "logs"
# What other engines call what torchrun calls so; each starts its own ranks with its own names.
NAMES = {
    "mpirun": {
        "RANK": "OMPI_COMM_WORLD_RANK",
        "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
        "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
        "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
    },
    "horovodrun": {
        "RANK": "HOROVOD_RANK",
        "WORLD_SIZE": "HOROVOD_SIZE",
        "LOCAL_RANK": "HOROVOD_LOCAL_RANK",
        "LOCAL_WORLD_SIZE": "HOROVOD_LOCAL_SIZE",
    },
}


def main(script: str, args: list[str]) -> None:
    """Redirect the output, leave a note, become the script."""
    launch = json.loads((HERE / "launch.json").read_text(encoding="utf-8"))
    names = NAMES.get(launch["engine"])
    if names:
        take_names(launch, names)
    rank = int(os.environ["RANK"])
    for stream, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(LOGS / f"rank{rank}.{stream}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640), descriptor)
    refuse_few(launch, int(os.environ.get("GROUP_WORLD_SIZE", launch["min_nodes"])))
    note = {
        "rank": rank,
        "local_rank": int(os.environ["LOCAL_RANK"]),
        "world_size": int(os.environ["WORLD_SIZE"]),
        "attempt": int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")),
        "started": time.time(),
    }
    write_json(f"rank{rank}", note)
    os.environ.update(stack_variables(rank))
    argv = [sys.executable, "-u", script, *args]
    if names:
        sys.exit(follow(argv, note))
    os.execv(argv[0], argv)  # noqa: S606 - becoming the script is the purpose


def stack_variables(rank: int) -> dict[str, str]:
    """Return the variables that make sitecustomize.py write this rank's stacks when it is asked to."""
    if not (HERE / "sitecustomize.py").exists():  # as under allreduce-run
        return {}
    before = os.environ.get("PYTHONPATH")
    own = {"ALLREDUCE_PYTHONPATH": before} if before is not None else {}
    path = str(HERE) + (os.pathsep + before if before else "")
    return {**own, "ALLREDUCE_STACK": str(LOGS / f"rank{rank}.stack"), "PYTHONPATH": path}


def refuse_few(launch: dict, nodes: int) -> None:
    """End where the rendezvous closed without nodes that the run needs; c10d leaves out one whose clock is late."""
    if nodes < launch["min_nodes"]:
        sys.exit(
            f"The rendezvous began with {nodes} of at least {launch['min_nodes']} nodes. c10d leaves out a node whose clock is some "
            f"seconds slow: compare the clocks of the nodes (playbook verify.yml does)."
        )


def take_names(launch: dict, names: dict[str, str]) -> None:
    """Give the script the variables that torchrun would; everything but them comes with launch.json, on each node its own."""
    import agent

    os.environ.update({name: os.environ[own] for name, own in names.items()})
    if launch["engine"] == "horovodrun" and "GLOO_SOCKET_IFNAME" in launch["variables"]:
        # horovodrun gives all nodes the name that the first node's interface has.
        os.environ["HOROVOD_GLOO_IFACE"] = launch["variables"]["GLOO_SOCKET_IFNAME"]
    os.environ.update(agent.environment(launch))
    ranks = int(os.environ["LOCAL_WORLD_SIZE"])
    os.environ.setdefault("OMP_NUM_THREADS", str(agent.threads_per_rank(ranks)))
    # They are those of the GPUs, one after the other: ranks that are not one for each GPU belong to none.
    if len(launch["cpus"]) == ranks and (cpus := launch["cpus"][int(os.environ["LOCAL_RANK"])]):
        bind(cpus)


def bind(cpus: str) -> None:
    """Keep this process to CPUS ("0-15,128-143") as far as it may use them."""
    spans = [[int(end) for end in part.split("-")] for part in cpus.split(",")]
    wanted = {cpu for span in spans for cpu in range(span[0], span[-1] + 1)}
    if allowed := wanted & os.sched_getaffinity(0):
        os.sched_setaffinity(0, allowed)


def follow(argv: list[str], note: dict) -> int:
    """Run the script as a child, note how it ended, return an exit code; signals for this process are the script's."""
    child = subprocess.Popen(argv)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, frame: child.send_signal(received))
    code = child.wait()
    size = int(os.environ["LOCAL_WORLD_SIZE"])
    write_json(f"rank{note['rank']}.end", {**note, "local_world_size": size, "exit_code": code, "time": time.time()})
    return code if code >= 0 else 128 - code


def write_json(name: str, value: dict) -> None:
    """Write LOGS/NAME.json so that a reader sees either nothing or all of it."""
    new = LOGS / f"{name}.new"
    new.write_text(json.dumps(value), encoding="utf-8")
    new.replace(LOGS / f"{name}.json")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
