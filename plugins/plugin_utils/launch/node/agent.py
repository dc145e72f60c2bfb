# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a node, in the training environment: what starts the ranks, with its outcome written as JSON.

torchrun prints a table for people when ranks fail; its exception has the same as data. Everything this needs is in
launch.json next to it (see plugin_utils/launch/request.py), so that neither arguments nor environment variables pass
through systemd, which would expand them and show them to every user of the node.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).absolute().parent
LOGS = HERE / "logs"
FLIGHT = LOGS / "flight-rank"  # a rank's dump has its number after it


def main(part: str = "") -> int:
    """Run the engine; what happened goes to logs/agent.json, what it prints to a log of its name. PART: task for that of Slurm's job."""
    launch = read_launch()
    if part == "task":
        from slurm import end_with_agent

        job = int(os.environ["SLURM_JOB_ID"])
        write_json(LOGS / "task.json", {"job": job, "finished": None})
        end_with_agent()
        return recorded(launch, "torchrun", "task", partial(torchrun, launch), job=job)
    return recorded(launch, launch["engine"], "agent", lambda: engine(launch["engine"])(launch))


def recorded(launch: dict, name: str, note: str, run: Callable[[], dict], **known: object) -> int:
    """Run to the end; what happened goes to logs/<note>.json with what is known of it, what is printed to logs/<name>.log."""
    os.umask(0o027)
    log = os.open(LOGS / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    os.dup2(log, 1)
    os.dup2(log, 2)
    outcome = {"started": time.time(), "failures": [], "error": None, **known}
    try:
        os.environ.update(environment(launch))
        # GPUs that wait for Slurm's job are others'.
        with watch(launch.get("watch_interval", 0) if name != "slurm" else 0):
            outcome.update(run())
    except BaseException as error:  # also SystemExit and torchrun's SignalException: each is an outcome to report
        traceback.print_exc()
        outcome["error"] = f"{type(error).__name__}: {error}".strip()
    outcome.setdefault("finished", time.time())
    write_json(LOGS / f"{note}.json", outcome)
    return 1 if outcome["error"] or outcome["failures"] else 0


def read_launch() -> dict:
    """Return the file that the controller wrote for this node."""
    return json.loads((HERE / "launch.json").read_text(encoding="utf-8"))


def engine(name: str) -> Callable[[dict], dict]:
    """Return the function that runs an engine to its end: {failures: [{rank, local_rank, exit_code, time, message}]}, perhaps error."""
    if name == "torchrun":
        return torchrun
    if name == "mpirun":
        from mpi import mpirun

        return partial(mpirun, ranks_per_node=ranks_per_node)
    if name == "slurm":
        from slurm import slurm

        return partial(slurm, note=partial(write_json, LOGS / "job.json"))
    from horovodrun import horovodrun

    return partial(horovodrun, ranks_per_node=ranks_per_node)


@contextlib.contextmanager
def watch(interval: float) -> Iterator[None]:
    """Have watch.py sample the node's GPUs meanwhile, into logs/gpus.jsonl; 0 for not at all."""
    if not interval:
        yield
        return
    argv = [sys.executable, str(HERE / "watch.py"), str(LOGS / "gpus.jsonl"), str(interval)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as watcher:  # it ends with its standard input
        watcher.wait()  # what samples has left its parent then
        yield


def torchrun(launch: dict) -> dict:
    """Run torchrun to its end."""
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    nproc = ranks_per_node(launch["nproc_per_node"])
    os.environ.setdefault("OMP_NUM_THREADS", str(threads_per_rank(nproc)))
    argv = [f"--nproc-per-node={nproc}", *launch["arguments"], str(HERE / "rank.py"), launch["script"]]
    try:
        run.main(argv + launch["args"])
    except ChildFailedError as error:
        return {"failures": [describe(rank, failure) for rank, failure in error.failures.items()]}
    return {}


def environment(launch: dict) -> dict[str, str]:
    """Return the environment of agent and ranks."""
    root = Path(launch["python"]).parent.parent
    return {
        "PATH": f"{root}/bin:{os.environ.get('PATH', '/usr/local/bin:/usr/bin:/bin')}",
        "VIRTUAL_ENV": str(root),
        "PYTHONUNBUFFERED": "1",
        "ALLREDUCE_RUN_ID": launch["run_id"],
        "ALLREDUCE_RUN_DIR": str(HERE / "work"),
        "ALLREDUCE_METRICS": str(LOGS / "metrics.json"),
        **recorder(),
        **launch["variables"],
    }


def recorder() -> dict[str, str]:
    """Return the variables that make PyTorch write the last collectives of each rank when one of NCCL's times out.

    2.13 knows both names of a setting, and warns of the old one; the new ones came in 2025 (pytorch/pytorch, pull request 152563).
    """
    try:
        release = re.match(r"(\d+)\.(\d+)", metadata.version("torch"))
    except metadata.PackageNotFoundError:
        release = None
    if release is None:
        return {}
    old = {"TORCH_NCCL_TRACE_BUFFER_SIZE": "2000", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(FLIGHT)}
    new = {"TORCH_FR_BUFFER_SIZE": "2000", "TORCH_FR_DUMP_TEMP_FILE": str(FLIGHT)}
    known = new if (int(release[1]), int(release[2])) >= (2, 13) else {**old, **new}
    return {"TORCH_NCCL_DUMP_ON_TIMEOUT": "1", **known}


def ranks_per_node(wanted: str) -> int:
    """Return the number of ranks that this node runs; raise RuntimeError where a CUDA build sees no GPU."""
    if wanted != "auto":
        return int(wanted)
    import torch

    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return 1
    count = torch.cuda.device_count()
    if count == 0:
        raise RuntimeError(
            f"PyTorch {torch.__version__} is a GPU build but sees no GPU on this node; look at nvidia-smi there, "
            "or set nproc_per_node to train on the processor."
        )
    return count


def threads_per_rank(nproc: int) -> int:
    """Return the threads for one rank's own work: half of its share, the rest is for data loading and communication."""
    return max(1, len(os.sched_getaffinity(0)) // (2 * nproc))


def describe(rank: int, failure) -> dict:
    """Return a torch ProcessFailure as data; exit_code is negative for a signal."""
    message = failure.message
    if isinstance(message, dict):
        message = message.get("message", "")
    return {
        "rank": rank,
        "local_rank": failure.local_rank,
        "exit_code": failure.exitcode,
        "time": failure.timestamp,
        "message": str(message),
    }


def write_json(path: Path, value: dict) -> None:
    """Write so that a reader sees either nothing or all of it."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value), encoding="utf-8")
    new.replace(path)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
