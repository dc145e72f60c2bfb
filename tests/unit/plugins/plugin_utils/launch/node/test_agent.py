# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent with a torch of a few lines; with the real one it runs in the lab."""

import json
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.training import flight
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.node import agent
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.request import NODE_FILES

TORCH = {
    "torch/__init__.py": """
import types
version = types.SimpleNamespace(cuda=None)
""",
    "torch/distributed/__init__.py": "",
    "torch/distributed/run.py": """
import ctypes, json, os, pathlib, sys, time
from .elastic.multiprocessing.errors import ChildFailedError
def main(argv):
    print("torchrun", json.dumps(argv), os.environ["OMP_NUM_THREADS"], os.environ["GREETING"])
    if "wait" in argv:
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # as mpi.py, which then waits for all children
        place = pathlib.Path(argv[-3]).parent / "logs" / "gpus.jsonl.pid"
        until = time.monotonic() + 20
        while not place.exists() or not place.read_text().count(" "):
            assert time.monotonic() < until
            time.sleep(0.05)
        try:
            raise RuntimeError(f"the agent has a child: {os.waitpid(-1, os.WNOHANG)}")
        except ChildProcessError:
            pass
    if "fail" in argv:
        raise ChildFailedError()
    if "crash" in argv:
        raise ConnectionError("no rendezvous")
    if "usage" in argv:
        sys.exit(2)
""",
    "torch/distributed/elastic/__init__.py": "",
    "torch/distributed/elastic/multiprocessing/__init__.py": "",
    "torch/distributed/elastic/multiprocessing/errors.py": """
import types
class ChildFailedError(Exception):
    failures = {1: types.SimpleNamespace(
        local_rank=0, exitcode=3, timestamp=99, message={"message": "ValueError: no"})}
""",
}


@pytest.fixture
def launch(tmp_path):
    """Run agent.py in a run's directory; returns (exit code, agent.json, torchrun.log)."""

    def run(*args, **more):
        library = tmp_path / "library"
        for name, text in TORCH.items():
            path = library / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "logs").mkdir()
        (tmp_path / "agent.py").write_text((NODE_FILES / "agent.py").read_text())
        request = {
            "python": sys.executable, "engine": "torchrun", "arguments": ["--nnodes=2"], "script": "train.py", "args": list(args),
            "variables": {"GREETING": "$HOME %n"}, "run_id": "r1", "nproc_per_node": "auto", **more,
        }  # fmt: skip
        (tmp_path / "launch.json").write_text(json.dumps(request))
        environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
        environment["PYTHONPATH"] = str(library)
        code = subprocess.run([sys.executable, str(tmp_path / "agent.py")], env=environment, check=False).returncode
        outcome = json.loads((tmp_path / "logs" / "agent.json").read_text())
        return code, outcome, (tmp_path / "logs" / "torchrun.log").read_text()

    return run


def test_torchrun_gets_its_arguments_and_nothing_is_expanded(launch, tmp_path):
    code, outcome, log = launch("--name", "$HOME")
    assert (code, outcome["failures"], outcome["error"]) == (0, [], None)
    expected = ["--nproc-per-node=1", "--nnodes=2", str(tmp_path / "rank.py"), "train.py", "--name", "$HOME"]
    assert json.dumps(expected) in log
    assert log.strip().endswith("$HOME %n")
    assert outcome["started"] <= outcome["finished"]


def test_the_gpus_are_watched_for_as_long_as_the_engine_runs(launch, tmp_path):
    (tmp_path / "watch.py").write_text(
        "import os, sys, time\ntime.sleep(0.5)\nif os.fork(): os._exit(0)\n"
        "open(sys.argv[1] + '.pid', 'w').write(f'{os.getpid()} {sys.argv[2]}')\nsys.stdin.read()\n"
        "open(sys.argv[1] + '.end', 'w').write('at the end')\n"
    )
    code, outcome, _log = launch("wait", watch_interval=0.5)
    assert (code, outcome["error"]) == (0, None)
    number, interval = (tmp_path / "logs" / "gpus.jsonl.pid").read_text().split()
    assert interval == "0.5"
    deadline = time.monotonic() + 20
    while is_running(int(number)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (tmp_path / "logs" / "gpus.jsonl.end").read_text() == "at the end"


def is_running(number):
    try:
        return "Z" not in open(f"/proc/{number}/stat").read().rpartition(")")[2]
    except FileNotFoundError:
        return False


def test_failed_ranks_are_written_as_data(launch):
    code, outcome, dummy = launch("fail")
    assert code == 1
    assert outcome["failures"] == [
        {"rank": 1, "local_rank": 0, "exit_code": 3, "time": 99, "message": "ValueError: no"}
    ]


@pytest.mark.parametrize(("word", "error"), [("crash", "ConnectionError: no rendezvous"), ("usage", "SystemExit: 2")])
def test_what_ends_torchrun_itself_is_written_too(launch, word, error):
    code, outcome, log = launch(word)
    assert code == 1
    assert outcome["error"] == error
    assert "Traceback" in log


@pytest.fixture
def torch(monkeypatch):
    fake = SimpleNamespace(
        __version__="2.13.0", version=SimpleNamespace(cuda="13.0"), cuda=SimpleNamespace(device_count=lambda: 4)
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


def test_there_is_one_rank_per_gpu(torch):
    assert agent.ranks_per_node("auto") == 4


def test_a_gpu_build_without_a_gpu_is_refused(torch):
    torch.cuda.device_count = lambda: 0
    with pytest.raises(RuntimeError, match="is a GPU build but sees no GPU on this node; look at nvidia-smi"):
        agent.ranks_per_node("auto")
    assert agent.ranks_per_node("2") == 2


def test_a_processor_build_runs_one_rank(torch):
    torch.version.cuda = None
    assert agent.ranks_per_node("auto") == 1


NEW = {"TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE"}
OLD = {"TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}


@pytest.mark.parametrize(
    ("release", "names"),
    [("2.13.0", NEW), ("2.13.0+cpu", NEW), ("2.4.1", NEW | OLD), ("3.0.0a0", NEW), ("unknown", set()), (None, set())],
)
def test_the_flight_recorder_is_set_by_the_names_that_the_release_knows(tmp_path, monkeypatch, release, names):
    if release:
        (tmp_path / "torch-1.dist-info").mkdir()
        (tmp_path / "torch-1.dist-info" / "METADATA").write_text(f"Name: torch\nVersion: {release}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert set(agent.recorder()) == names
    launch = {"python": "/e/bin/python", "run_id": "r1", "variables": {"TORCH_NCCL_DUMP_ON_TIMEOUT": "0"}}
    assert agent.environment(launch)["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "0"  # the user's own choice


def test_dumps_lie_where_the_module_looks_for_them():
    assert agent.FLIGHT.parent == agent.LOGS
    assert flight.DUMP_FILE.match(f"{agent.FLIGHT.name}12")


@pytest.mark.parametrize(("processors", "ranks", "threads"), [(2, 1, 1), (128, 8, 8), (4, 8, 1), (16, 1, 8)])
def test_each_rank_gets_half_its_share_of_the_processors(monkeypatch, processors, ranks, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(processors)))
    assert agent.threads_per_rank(ranks) == threads
