# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a node, as a part of the agent: submits a run to Slurm as one job, and waits for its end.

The first node's agent submits the job, and follows it; the job runs agent.py on each node again, and it torchrun. Whoever ends an agent ends
the job, and a task whose agent is gone ends itself: nothing outlives the units of the run. logs/job.json is how the job stands,
logs/task.json how the task of this node ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

with contextlib.suppress(ImportError):  # only ansible-test's import check runs without it
    from commands import GRACE

HERE = Path(__file__).absolute().parent
LOGS = HERE / "logs"
HELD = LOGS / "agent.lock"  # by the agent, as long as it lives
# Seconds: between two looks at the job; for one program of Slurm's; for a controller that is silent when a task has ended; and from the
# first signal to the end of the job's time.
LOOK, ANSWER, PATIENCE, WARNING = 3.0, 20.0, 120.0, 120
FINAL = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
)
# Of a job that ends because a task did: then the task knows more.
BY_TASK = ("FAILED", "OUT_OF_MEMORY")
# States of a node that runs no job (sinfo(1), NODE STATE CODES); one that does not respond has an asterisk.
OUT = re.compile(r"(?i)down|drain|error|fail|future|inval|perfctrs|power(ed|ing)_down|reboot|unk|.*\*$")
EXPIRED = 124  # what the job ends with when its time is up and its ranks have ended before that
FIELDS = re.compile(r"(?<!\S)(JobState|Reason|Restarts|TimeLimit|ExitCode)=(\S*)")
TEXT = 500  # characters of what Slurm says
# The job. USR1 comes WARNING seconds before its time is up: the ranks are told to save and end; then it begins again, as often as it may.
SCRIPT = """#!/bin/sh
trap 'expiring=yes; scancel --signal=TERM "$SLURM_JOB_ID"' USR1
srun --ntasks-per-node=1 --kill-on-bad-exit=1 --cpu-bind=none {task} &
while wait $!; code=$?; kill -0 $! 2>/dev/null; do :; done
if [ -z "$expiring" ] || [ "$code" = 0 ]; then exit "$code"; fi
[ "${{SLURM_RESTART_COUNT:-0}}" -lt {restarts} ] && scontrol requeue "$SLURM_JOB_ID" && sleep 60
exit {expired}
"""


class Stopped(BaseException):
    """A signal. No InterruptedError, which the standard library's own waiting takes for a reason to go on."""


def interrupted(number: int, dummy: object) -> None:
    """Handle a signal by an exception; raise Stopped."""
    raise Stopped(f"signal {number}")


def slurm(launch: dict, note: Callable[[dict], None]) -> dict:
    """Run this node's part to its end; NOTE leaves how the job stands, where the controller reads it."""
    signal.signal(signal.SIGTERM, interrupted)
    os.environ["PATH"] = os.pathsep.join(
        [os.environ["PATH"], *dict.fromkeys(str(Path(one).parent) for one in launch["programs"])]
    )
    with HELD.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            job = first(launch, note) if launch["is_first"] else other()
        except Stopped as error:
            run("scancel", f"--name={launch['job']}", seconds=GRACE / 2)
            await_task(GRACE / 2)
            return ended({"state": "CANCELLED"}, str(error))
    return ended(job, None if job.get("state") == "COMPLETED" else describe(job))


def first(launch: dict, note: Callable[[dict], None]) -> dict:
    """Submit the job and follow it to its end; return how it ended."""
    job = obstacle(launch["nodes"]) or submit(launch)
    note(job)
    answered = time.monotonic()
    while "code" not in job and job["state"] not in FINAL:
        time.sleep(LOOK)
        if seen := look(job["id"]):
            job, answered = seen, time.monotonic()
            note(job)
        elif task_ended() and time.monotonic() - answered > PATIENCE:
            return own_end(job)
    return job


def other() -> dict:
    """Wait for the end of this node's task, or of the job where the task failed: Slurm may start it again.

    Where the job ended for another reason than a task, the first node tells it, and this one is stopped.
    """
    answered = time.monotonic()
    while True:
        time.sleep(LOOK)
        if not task_ended():
            answered = time.monotonic()
            continue
        task = read("task.json")
        if not (task["failures"] or task["error"]):
            return {"state": "COMPLETED"}
        if seen := look(task["job"]):
            answered = time.monotonic()
            if seen["state"] in BY_TASK and not seen["expired"]:
                return seen
        elif time.monotonic() - answered > PATIENCE:
            return own_end({"id": task["job"]})


def own_end(job: dict) -> dict:
    """Return the end of a job of which only this node's task is known."""
    task = read("task.json")
    return {**job, "state": "FAILED" if task["failures"] or task["error"] else "COMPLETED"}


def ended(job: dict, error: str | None) -> dict:
    """Return the outcomes of this node's ranks that are a reason: those that were told to end are none."""
    task = read("task.json")
    told = job.get("state") not in BY_TASK or job.get("expired")
    quiet = (-signal.SIGTERM, 128 + signal.SIGTERM) if told else ()
    failures = [one for one in task.get("failures") or [] if one["exit_code"] not in quiet]
    known = error and not told and task.get("error")
    # The task that was the first to end is the cause of the others.
    when = {"finished": task["finished"]} if failures or known else {}
    engine = {"engine": "torchrun"} if known and not failures else {}
    return {"failures": failures, "error": None if failures else known or error, **when, **engine}


def describe(job: dict) -> str:
    """Return the end of a job for the log; the controller has words of its own (launch/queue.py)."""
    return " ".join(str(job[key]) for key in ("code", "state", "reason") if job.get(key))


def obstacle(nodes: list[str]) -> dict | None:
    """Return the reason why no job can run on these nodes: the controller is silent, or a node is out or not of the cluster."""
    code, said = run("sinfo", "--noheader", "--Node", f"--nodes={','.join(nodes)}", "--format=%N|%T|%E")
    if code:
        return {"code": "silent", "reason": said}
    states = dict(line.split("|", 1) for line in said.splitlines() if line.count("|") >= 2)
    for node in nodes:
        state, _bar, reason = next((states[one] for one in states if one.lower() == node.lower()), "").partition("|")
        if not state:
            return {"code": "foreign", "node": node}
        if OUT.match(state):
            return {"code": "out", "node": node, "state": state, "reason": reason.strip()[:TEXT]}
    return None


def submit(launch: dict) -> dict:
    """Submit the job as the user that this is; its environment is its own: what the script finds is in launch.json."""
    task = shlex.join([launch["python"], str(HERE / "agent.py"), "task"])
    script = SCRIPT.format(task=task, restarts=launch["restarts"], expired=EXPIRED)
    gpus = [f"--gres=gpu:{launch['gpus']}"] if launch["gpus"] else []
    settings = {key: value for key, value in launch["variables"].items() if key.startswith(("SBATCH_", "SLURM_"))}
    code, said = run(
        "sbatch", "--parsable", f"--job-name={launch['job']}", f"--nodelist={','.join(launch['nodes'])}",
        f"--nodes={len(launch['nodes'])}", "--ntasks-per-node=1", "--exclusive", "--mem=0", *gpus, "--requeue",
        f"--signal=B:USR1@{WARNING}", f"--chdir={HERE / 'work'}", "--open-mode=append", f"--output={LOGS / 'slurm.log'}",
        script=script, environment={**own_environment(), **settings},
    )  # fmt: skip
    found = re.match(r"\d+", said)
    return {"code": "refused", "reason": said} if code or not found else {"id": int(found[0]), "state": "PENDING"}


def own_environment() -> dict[str, str]:
    """Return the environment of a login, without variables of the run: Slurm keeps the environment of a job in files of its own."""
    return {
        key: os.environ[key] for key in ("HOME", "LANG", "LOGNAME", "SHELL", "SLURM_CONF", "USER") if key in os.environ
    } | {"PATH": os.environ["PATH"]}


def look(job: int) -> dict | None:
    """Return the state of the job; None where it is not known."""
    code, said = run("scontrol", "--oneliner", "show", "job", str(job))
    found: dict[str, str] = {}
    for name, value in FIELDS.findall(said):
        found.setdefault(name, value)
    if code or "JobState" not in found:
        return None
    return {
        "id": job,
        "state": found["JobState"],
        "reason": found.get("Reason", "None"),
        "restarts": int(found["Restarts"]) if found.get("Restarts", "").isdecimal() else 0,
        "limit": found.get("TimeLimit", ""),
        "expired": found["JobState"] == "TIMEOUT" or found.get("ExitCode") == f"{EXPIRED}:0",
    }


def run(
    *argv: str, script: str | None = None, environment: dict[str, str] | None = None, seconds: float = ANSWER
) -> tuple[int, str]:
    """Return (exit code, what a program of Slurm's says); where it failed, what it complains of."""
    try:
        done = subprocess.run(
            argv,
            input=script or "",
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"{argv[0]} has not ended after {seconds:g} s"
    except OSError as error:
        return 1, f"{argv[0]}: {error.strerror}"
    if done.returncode:
        print(" ".join(argv), done.stdout, done.stderr, flush=True)
    return done.returncode, (" ".join(done.stderr.split())[-TEXT:] if done.returncode else done.stdout).strip()


def read(name: str) -> dict:
    """Return a note; {} where there is none."""
    try:
        return json.loads((LOGS / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def task_ended() -> bool:
    return bool(read("task.json").get("finished"))


def await_task(seconds: float) -> None:
    """Let the task note how its ranks ended, if there is one."""
    until = time.monotonic() + seconds
    while (LOGS / "task.json").exists() and not task_ended() and time.monotonic() < until:
        time.sleep(0.2)


def end_with_agent() -> None:
    """Have the job's task, which this process is, end as soon as no agent holds its lock: nothing would stop the ranks then."""

    def wait() -> None:
        with HELD.open() as held:
            fcntl.flock(held, fcntl.LOCK_SH)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
