# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents, job script and tasks of a run on two "nodes" of one machine, with a Slurm and a torch of a few lines; the real ones run in the lab."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.node import slurm
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.request import NODE_FILES

# All of Slurm's programs, by the name that it is called by: STATE has the job's record and the group of its processes.
SLURM = """#!{python}
import json, os, pathlib, signal, subprocess, sys, time
state = pathlib.Path({state!r})
name, args = os.path.basename(sys.argv[0]), sys.argv[1:]
with (state / "calls").open("a") as calls:
    calls.write(json.dumps([name, *args]) + "\\n")
def job(**changes):
    path = state / "job"
    found = json.loads(path.read_text()) if path.exists() else {{}}
    if changes:
        new = path.with_suffix("." + str(os.getpid()))
        new.write_text(json.dumps({{**found, **changes}}))
        new.replace(path)
    return {{**found, **changes}}
def begin(restarts):
    environment = {{**os.environ, "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(restarts)}}
    if os.fork():
        return
    os.setsid()
    job(JobState="RUNNING", Reason="None", Restarts=restarts, group=os.getpid())
    batch = subprocess.Popen(["sh", str(state / "script")], env=environment, stdout=open(state / "out", "a"), stderr=subprocess.STDOUT)
    job(batch=batch.pid)
    code = batch.wait()
    if job()["Restarts"] == restarts and job()["JobState"] == "RUNNING":
        job(JobState="FAILED" if code else "COMPLETED", Reason="NonZeroExitCode" if code else "None", ExitCode=f"{{code}}:0")
    os._exit(0)
def tasks(number):
    for path in state.glob("task-*"):
        try:
            os.kill(int(path.read_text()), number)
        except ProcessLookupError:
            pass
if name == "sinfo":
    if not (state / "sinfo").exists():
        sys.exit("slurm_load_partitions: Unable to contact slurm controller (connect failure)")
    print((state / "sinfo").read_text())
elif name == "sbatch":
    if (state / "refusal").exists():
        sys.exit((state / "refusal").read_text())
    (state / "script").write_text(sys.stdin.read())
    (state / "environment").write_text(json.dumps(dict(os.environ)))
    job(JobState="PENDING", Reason="Resources", Restarts=0, ExitCode="0:0")
    print("7;cluster")
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    if not (state / "full").exists():
        begin(0)
elif name == "srun":
    environment = {{**os.environ, "PYTHONPATH": str(state.parent / "library")}}
    command = [one for one in args if not one.startswith("--")]
    both = {{node: subprocess.Popen([one.replace("/node-1/", f"/{{node}}/") for one in command], env=environment) for node in ("node-1", "node-2")}}
    for node, one in both.items():
        (state / f"task-{{node}}").write_text(str(one.pid))
    codes = []
    while len(codes) < 2:
        for node, one in list(both.items()):
            if one.poll() is not None:
                codes.append(both.pop(node).returncode)
                if codes[-1]:
                    tasks(signal.SIGTERM)
        time.sleep(0.05)
    sys.exit(max(abs(code) for code in codes))
elif name == "scontrol" and args[0] == "requeue":
    job(JobState="PENDING", Reason="BeginTime", Restarts=job()["Restarts"] + 1)
    os.kill(job()["batch"], signal.SIGKILL)
    begin(job()["Restarts"])
elif name == "scontrol":
    words = job()
    print("JobId=7 JobName=allreduce-r1", *(f"{{key}}={{words.get(key)}}" for key in ("JobState", "Reason", "Restarts", "ExitCode")), "TimeLimit=00:30:00")
elif name == "scancel":
    if not any(one.startswith("--signal") for one in args):
        job(JobState="CANCELLED")
    tasks(signal.SIGTERM)
"""
TORCH = """
import os, pathlib, runpy, signal, sys
from .elastic.multiprocessing.errors import ChildFailedError
def end(number, frame):
    raise InterruptedError(f"Process got signal: {number}")
def main(argv):
    signal.signal(signal.SIGTERM, end)
    os.environ["NODE"] = pathlib.Path(argv[-2]).parent.parent.name
    sys.argv = argv[-1:]
    try:
        exec(compile((pathlib.Path(argv[-2]).parent / "work" / argv[-1]).read_text(), "train.py", "exec"), {})
    except SystemExit as error:
        raise ChildFailedError(error.code)
"""
ERRORS = """
import time, types
class ChildFailedError(Exception):
    def __init__(self, code):
        self.failures = {int(__import__("os").environ["NODE"][-1]) - 1: types.SimpleNamespace(
            local_rank=0, exitcode=code, timestamp=time.time(), message="")}
"""
IDLE = "gpu-1|idle|none\ngpu-2|mixed|none\ngpu-2|mixed|none"


class Runs:
    """Two nodes of one run and their Slurm."""

    def __init__(self, place):
        self.place, self.state = place, place / "state"
        self.state.mkdir()
        (self.state / "sinfo").write_text(IDLE)
        programs = place / "bin"
        programs.mkdir()
        for name in ("sinfo", "sbatch", "srun", "scontrol", "scancel"):
            (programs / name).write_text(SLURM.format(python=sys.executable, state=str(self.state)))
            (programs / name).chmod(0o755)
        library = place / "library" / "torch"
        files = {
            "__init__.py": "import types\nversion = types.SimpleNamespace(cuda=None)",
            "distributed/run.py": TORCH,
            "distributed/__init__.py": "",
        }
        files |= {"distributed/elastic/__init__.py": "", "distributed/elastic/multiprocessing/__init__.py": ""}
        for name, text in {**files, "distributed/elastic/multiprocessing/errors.py": ERRORS}.items():
            (library / name).parent.mkdir(parents=True, exist_ok=True)
            (library / name).write_text(text)
        self.programs = programs
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "SECRET": "s"}
        self.processes = []

    def start(self, name, script, restarts=0):
        run = self.place / name / "run"
        for folder in ("logs", "work"):
            (run / folder).mkdir(parents=True)
        for file in ("agent.py", "slurm.py", "commands.py"):
            (run / file).write_text(
                (NODE_FILES / file)
                .read_text()
                .replace("LOOK, ANSWER, PATIENCE, WARNING = 3.0", "LOOK, ANSWER, PATIENCE, WARNING = 0.1")
            )
        (run / "work" / "train.py").write_text(script)
        launch = {
            "engine": "slurm", "arguments": [], "python": sys.executable, "script": "train.py", "args": [], "run_id": "r1", "nproc_per_node": "1",
            "variables": {"TOKEN": "t", "SBATCH_PARTITION": "long"}, "is_first": name == "node-1", "programs": [str(self.programs / "sbatch")],
            "nodes": ["gpu-1", "gpu-2"], "gpus": 4, "job": "allreduce-r1", "restarts": restarts,
        }  # fmt: skip
        (run / "launch.json").write_text(json.dumps(launch))
        self.processes.append(
            subprocess.Popen([sys.executable, str(run / "agent.py")], env=self.environment, cwd=run / "work")
        )
        return self.processes[-1]

    def both(self, script, **more):
        two = self.start("node-2", script, **more)
        self.until((self.place / "node-2" / "run" / "logs" / "agent.lock").exists)
        return self.start("node-1", script, **more), two

    def until(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.05)

    def note(self, name, node="node-1"):
        return json.loads((self.place / node / "run" / "logs" / f"{name}.json").read_text())

    def calls(self, program):
        return [
            one[1:] for one in map(json.loads, (self.state / "calls").read_text().splitlines()) if one[0] == program
        ]


@pytest.fixture
def runs(tmp_path):
    made = Runs(tmp_path)
    yield made
    for one in made.processes:
        one.kill()
        one.wait()
    for path in made.state.glob("task-*"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(path.read_text()), signal.SIGKILL)


def test_one_job_runs_a_task_on_each_node(runs):
    one, two = runs.both(
        "import os; open('/'.join([os.environ['ALLREDUCE_RUN_DIR'], 'seen']), 'w').write(os.environ['TOKEN'])"
    )
    assert (one.wait(60), two.wait(60)) == (0, 0)
    for node in ("node-1", "node-2"):
        outcome = runs.note("agent", node)
        assert (outcome["failures"], outcome["error"]) == ([], None)
        assert (runs.place / node / "run" / "work" / "seen").read_text() == "t"
    assert (runs.note("job")["id"], runs.note("job")["state"], runs.note("job")["restarts"]) == (7, "COMPLETED", 0)
    (asked,) = runs.calls("sbatch")
    assert {
        "--nodelist=gpu-1,gpu-2",
        "--nodes=2",
        "--gres=gpu:4",
        "--requeue",
        "--job-name=allreduce-r1",
        "--signal=B:USR1@120",
    } <= set(asked)
    seen = json.loads((runs.state / "environment").read_text())
    assert seen["SBATCH_PARTITION"] == "long"
    assert not {"TOKEN", "SECRET", "ALLREDUCE_RUN_ID"} & set(seen)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("sinfo", None, {"code": "silent", "reason": "slurm_load_partitions: Unable to contact slurm controller (connect failure)"}),
        ("sinfo", "gpu-1|idle|none", {"code": "foreign", "node": "gpu-2"}),
        ("sinfo", "gpu-1|drained|fan 3\nGPU-2|idle|none", {"code": "out", "node": "gpu-1", "state": "drained", "reason": "fan 3"}),
        ("sinfo", "gpu-1|idle|none\ngpu-2|idle*|Not responding", {"code": "out", "node": "gpu-2", "state": "idle*", "reason": "Not responding"}),
        ("refusal", "sbatch: error: invalid partition specified: long", {"code": "refused", "reason": "sbatch: error: invalid partition specified: long"}),
    ],
)  # fmt: skip
def test_what_keeps_a_job_from_being_submitted_is_noted(runs, name, text, expected):
    (runs.state / name).unlink(missing_ok=True)
    if text is not None:
        (runs.state / name).write_text(text)
    assert runs.start("node-1", "").wait(60) == 1
    assert runs.note("job") == expected
    assert runs.note("agent")["error"].startswith(expected["code"])


# The second fails once the first is at work: a task that is ended before it began has nothing to tell.
ONE_FAILS = """
import os, pathlib, sys, time
begun = pathlib.Path({begun!r})
if os.environ["NODE"] == "node-1":
    begun.touch()
    time.sleep(60)
while not begun.exists():
    time.sleep(0.05)
sys.exit(3)
"""


def test_the_rank_that_fails_is_the_cause_and_the_job_ends(runs):
    one, two = runs.both(ONE_FAILS.format(begun=str(runs.place / "begun")))
    assert (one.wait(60), two.wait(60)) == (1, 1)
    (failure,) = runs.note("agent", "node-2")["failures"]
    assert (failure["rank"], failure["exit_code"]) == (1, 3)
    first = runs.note("agent")
    assert first["failures"] == []
    assert (first["engine"], first["error"]) == ("torchrun", "InterruptedError: Process got signal: 15")
    assert runs.note("agent", "node-2")["finished"] <= first["finished"]


def test_a_stopped_agent_cancels_the_job_and_its_ranks_end(runs):
    one, two = runs.both("import time; time.sleep(60)")
    runs.until(
        lambda: (
            (runs.state / "task-node-2").exists() and (runs.place / "node-1" / "run" / "logs" / "task.json").exists()
        )
    )
    time.sleep(1)
    one.terminate()
    assert one.wait(30) == 1
    assert ["--name=allreduce-r1"] in runs.calls("scancel")
    assert runs.note("task")["finished"]
    two.terminate()
    assert two.wait(30) == 1
    assert runs.note("agent", "node-2")["failures"] == []


def test_a_task_ends_with_the_agent_of_its_node(runs):
    one, dummy = runs.both("import time; time.sleep(60)")
    runs.until((runs.place / "node-1" / "run" / "logs" / "task.json").exists)
    time.sleep(1)
    one.kill()
    runs.until(lambda: runs.note("task")["finished"], 20)
    assert "signal: 15" in runs.note("task")["error"]


# Its first life waits to be ended, its second begins where that left off.
LIVES = """
import os, pathlib, time
place = pathlib.Path(os.environ["ALLREDUCE_RUN_DIR"], "lives")
lives = place.read_text() if place.exists() else ""
place.write_text(lives + "x")
if not lives:
    time.sleep(60)
"""


@pytest.mark.parametrize(("restarts", "code", "state"), [(1, 0, "COMPLETED"), (0, 1, "FAILED")])
def test_a_job_whose_time_is_up_begins_again_as_often_as_it_may(runs, restarts, code, state):
    one, two = runs.both(LIVES, restarts=restarts)
    runs.until(lambda: all((runs.place / node / "run" / "work" / "lives").exists() for node in ("node-1", "node-2")))
    os.kill(json.loads((runs.state / "job").read_text())["batch"], signal.SIGUSR1)
    assert one.wait(60) == code
    job = runs.note("job")
    assert (job["state"], job["restarts"], job["expired"]) == (state, restarts, not restarts)
    assert ["--signal=TERM", "7"] in runs.calls("scancel")
    if restarts:
        assert two.wait(60) == 0
        assert (runs.place / "node-2" / "run" / "work" / "lives").read_text() == "xx"
    else:  # the first node tells the reason, and this one is stopped
        assert two.poll() is None
        assert runs.note("agent")["failures"] == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "JobId=7 JobName=a JobState=TIMEOUT Reason=TimeLimit Requeue=1 Restarts=2 ExitCode=0:15 TimeLimit=1-00:00:00 TimeMin=N/A",
            {"id": 7, "state": "TIMEOUT", "reason": "TimeLimit", "restarts": 2, "limit": "1-00:00:00", "expired": True},
        ),
        (
            "JobId=7 JobState=PENDING Reason=ReqNodeNotAvail,_UnavailableNodes:gpu-2 Restarts=x",
            {"id": 7, "state": "PENDING", "reason": "ReqNodeNotAvail,_UnavailableNodes:gpu-2", "restarts": 0, "limit": "", "expired": False},
        ),
        ("slurm_load_jobs error", None),
        ("", None),
    ],
)  # fmt: skip
def test_how_a_job_stands_is_read(monkeypatch, said, expected):
    monkeypatch.setattr(slurm, "run", lambda *argv: (0, said))
    assert slurm.look(7) == expected


def test_a_signal_while_a_program_of_slurms_runs_ends_the_agent(monkeypatch):
    before = signal.signal(signal.SIGALRM, slurm.interrupted)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(slurm.Stopped):
            slurm.run("sleep", "5")
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "state",
    [
        "down",
        "drained",
        "draining",
        "idle*",
        "down*",
        "fail",
        "failing",
        "inval",
        "unknown",
        "rebooting",
        "powering_down",
    ],
)
def test_a_node_in_such_a_state_runs_no_job(state):
    assert slurm.OUT.match(state)


@pytest.mark.parametrize("state", ["idle", "mixed", "allocated", "completing", "idle~", "planned", "reserved", "maint"])
def test_a_node_in_such_a_state_does_or_will(state):
    assert not slurm.OUT.match(state)
