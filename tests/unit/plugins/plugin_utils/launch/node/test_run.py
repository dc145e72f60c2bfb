# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""allreduce-run on this machine, which has both nodes' addresses: real connections and processes, and an agent without PyTorch."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.job import Place
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.launchers.table import LAUNCHERS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.node import run as program
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.remote import launch

NODES = {"gpu-1": "127.0.0.1", "gpu-2": "127.0.0.2"}
# What the real one leaves: the log of rank 0, the outcome. The script says what is to happen, by rank.
AGENT = """
import json, os, pathlib, subprocess, sys, time
here = pathlib.Path(__file__).absolute().parent
launch = json.loads((here / "launch.json").read_text())
rank = launch["variables"]["ALLREDUCE_NODE_NUMBER"]
environment = {**os.environ, **launch["variables"], "ALLREDUCE_RUN_ID": launch["run_id"], "RANK": rank}
with open(here / "logs" / f"rank{rank}.out", "w") as out, open(here / "logs" / f"rank{rank}.err", "w") as err:
    code = subprocess.call([sys.executable, "-u", launch["script"], *launch["args"]], env=environment, stdout=out, stderr=err)
failures = [{"rank": int(rank), "exit_code": code, "time": time.time()}] if code else []
(here / "logs" / "agent.json").write_text(json.dumps({"failures": failures, "error": None}))
"""


@pytest.fixture
def start(tmp_path):
    """Start the command as a user does, with a home and a record of its own."""
    folder = tmp_path / "installed"
    shutil.copytree(Path(program.__file__).parent, folder)
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    record = tmp_path / "nodes.json"
    record.write_text(
        json.dumps([{"name": name, "address": address} for name, address in NODES.items()]), encoding="utf-8"
    )
    # Each node has a home of its own: here they would share one, and with it the run's directory.
    text = (folder / "serve.py").read_text(encoding="utf-8")
    (folder / "serve.py").write_text(
        text.replace('header["run_id"]\n', 'header["address"] / header["run_id"]\n'), encoding="utf-8"
    )
    text = (folder / "run.py").read_text(encoding="utf-8").replace("/etc/allreduce/nodes.json", str(record))
    (folder / "run.py").write_text(text, encoding="utf-8")

    def start(script, *arguments, **variables):
        (tmp_path / "train.py").write_text(script, encoding="utf-8")
        return subprocess.Popen(
            [sys.executable, str(folder / "run.py"), *arguments, "train.py"], cwd=tmp_path, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, "HOME": str(tmp_path), **variables},
        )  # fmt: skip

    return start


@pytest.fixture
def run(start):
    """Run to the end: (exit status, output, errors)."""

    def run(*arguments, **variables):
        process = start(*arguments, **variables)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    return run


def test_what_rank_0_prints_is_shown(run, tmp_path):
    script = "import os; print('rank', os.environ['RANK'], os.environ['ALLREDUCE_NODE_ADDRESSES'], os.environ['KEY'])"
    status, out, err = run(script, "-x", "KEY", KEY="sesame")
    assert (status, out) == (0, "rank 0 127.0.0.1,127.0.0.2 sesame\n"), err
    assert "logs are in ~/allreduce-runs/" in err
    (log,) = tmp_path.glob("allreduce-runs/127.0.0.2/*/logs/rank1.out")
    assert log.read_text(encoding="utf-8") == "rank 1 127.0.0.1,127.0.0.2 sesame\n"


def test_the_first_failure_ends_the_others_and_is_shown(run):
    script = "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit('no data here')\ntime.sleep(600)"
    status, _out, err = run(script)
    assert status == 1
    assert "rank 1 on gpu-2 ended with exit code 1\n  no data here\n" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_no_process(start, tmp_path, number):
    process = start("import time; print('asleep', flush=True); time.sleep(600)")
    assert process.stdout.readline() == "asleep\n"
    process.send_signal(number)
    _out, err = process.communicate(timeout=60)
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number
        assert "it was interrupted" in err
    deadline = time.monotonic() + 30
    while left := [path for path in Path("/proc").glob("[0-9]*/cwd") if str(tmp_path) in target(path)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


def target(link):
    try:
        return str(link.readlink())
    except OSError:
        return ""


def test_what_a_shell_prints_is_left_out_and_told(start, tmp_path):
    """As an echo in ~/.bashrc does, before, between and after."""
    path = tmp_path / "installed" / "serve.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("def say(**message", "print('Welcome', end='', flush=True)\n\n\ndef say(**message"),
        encoding="utf-8",
    )
    out, err = start(
        "import os; print('\\33[31mrank\\33[0m', os.environ['RANK'], '\\33]0;title\\7', end='\\r')"
    ).communicate(timeout=60)
    assert out.rstrip() == "rank 0"
    assert "allreduce-run: gpu-2 has also printed 'Welcome', which was left out" in err


def test_a_silent_node_ends_the_run(start, tmp_path):
    for name, old, new in (
        (
            "serve.py",
            '    say(kind="ready"',
            "    time.sleep(600 * header['address'].endswith('2'))\n    say(kind=\"ready\"",
        ),
        ("connection.py", "HELLO, SILENCE, SLOWEST = 60.0", "HELLO, SILENCE, SLOWEST = 3.0"),
        ("connection.py", "GRACE = 10.0", "GRACE = 1.0"),
    ):
        path = tmp_path / "installed" / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
    process = start("print('never')")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert "failed: gpu-2: it cannot be reached, or cannot begin: it has said nothing for 3 s" in err


def test_pipes_in_place_of_logs_hold_nobody_up(run):
    """Of the script's own user, to whom the logs belong."""
    script = """
import os, pathlib, sys
logs = pathlib.Path(os.getcwd()).parent / "logs"
for name in (f"rank{os.environ['RANK']}.err", "rank0.out", "torchrun.log"):
    (logs / name).unlink(missing_ok=True)
    os.mkfifo(logs / name)
sys.exit(3)
"""
    status, _out, err = run(script)
    assert status == 1
    assert "ended with exit code 3" in err


def test_clocks_that_are_apart_end_the_run_before_it_begins(start, tmp_path):
    path = tmp_path / "installed" / "serve.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("now=time.time()", "now=time.time() + 40 * header['address'].endswith('2')"), encoding="utf-8"
    )
    process = start("print('never')")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert "the clocks of gpu-1 and gpu-2 are at least" in err


def test_versions_that_differ_end_the_run_before_it_begins(start, tmp_path):
    path = tmp_path / "installed" / "serve.py"
    own = "versions=versions()"
    text = path.read_text(encoding="utf-8")
    assert own in text
    path.write_text(text.replace(own, 'versions={"pytest": header["address"], "tool": "1"}'), encoding="utf-8")
    out, err = start("print('never')").communicate(timeout=60)
    assert out == ""
    assert "the environment of gpu-2 has pytest 127.0.0.2, not 127.0.0.1 as on gpu-1" in err


@pytest.mark.parametrize("restarts", [0, 3])
@pytest.mark.parametrize("name", NODES)
def test_torchrun_is_told_what_role_train_tells_it(tmp_path, name, restarts):
    asked = argparse.Namespace(
        script=tmp_path / "train.py",
        args=["--epochs", "2"],
        port=29500,
        max_restarts=restarts,
        nproc_per_node="auto",
        x=[],
    )
    mine = json.loads(program.header(asked, "r1", NODES, name, b""))["launch"]
    place = Place(name, tuple(NODES), NODES, 29500)
    args = {"run_id": "r1", "max_restarts": restarts, "min_nodes": 2, "environment": "main", "script": "train.py",
            "args": ["--epochs", "2"], "variables": {}, "nproc_per_node": "auto", "watch_interval": program.WATCH_INTERVAL}  # fmt: skip
    theirs = launch(args, LAUNCHERS["torchrun"], place, 0)
    # serve.py adds where the logs are, as only the node knows the user's home; python is the one that runs there.
    told = [one for one in theirs["arguments"] if not one.startswith("--log-dir=")]
    assert sorted(mine["arguments"]) == sorted(told)
    assert {**mine, "arguments": [], "python": "", "cpus": None} == {
        **theirs,
        "arguments": [],
        "python": "",
        "cpus": None,
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--nproc-per-node", "0"], "--nproc-per-node is auto or a number of at least 1, not 0"),
        (["--nproc-per-node", "\u00b2"], "--nproc-per-node is auto or a number of at least 1, not \u00b2"),
        (["--port", "0"], "--port is a number from 1 to 65535, not 0"),
        (["--port", "65536"], "--port is a number from 1 to 65535, not 65536"),
        (["--max-restarts", "-1"], "--max-restarts is 0 or more, not -1"),
        (["--file", "a/train.py"], "two files would be train.py on the nodes; rename one of them"),
    ],
)
def test_arguments_with_which_a_run_cannot_work_are_refused(tmp_path, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    for name in ("train.py", "a/train.py"):
        (tmp_path / name).touch()
    program.parse_arguments(["--file", "train.py", "train.py"])
    with pytest.raises(SystemExit):
        program.parse_arguments([*arguments, "train.py"])
    assert sentence in capsys.readouterr().err


def test_a_package_whose_installation_was_cut_off_holds_nobody_up(run, tmp_path):
    (tmp_path / "half" / "torch-2.13.0.dist-info").mkdir(parents=True)
    code, out, errors = run("print('well')", PYTHONPATH=str(tmp_path / "half"))
    assert (code, "well" in out) == (0, True), errors


def test_a_terminal_that_lacks_a_character_ends_no_run(run):
    code, out, errors = run("import sys; sys.stdout.buffer.write(b'\\xe2\\x9c\\x93\\n')", PYTHONIOENCODING="latin-1")
    assert (code, out.strip()) == (0, "?"), errors


@pytest.mark.parametrize(
    ("wanted", "names"), [("", ["gpu-1", "gpu-2"]), ("1", ["gpu-1"]), ("gpu-2,gpu-1", ["gpu-2", "gpu-1"])]
)
def test_nodes(tmp_path, wanted, names):
    record = tmp_path / "nodes.json"
    record.write_text(
        json.dumps([{"name": name, "address": address} for name, address in NODES.items()]), encoding="utf-8"
    )
    assert list(program.choose(wanted, record)) == names


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("gpu-9", "there is no node gpu-9; the cluster has gpu-1, gpu-2"),
        ("3", "--nodes 3, but the cluster has 2"),
        ("0", "--nodes 0, but"),
        ("\u00b2", "there is no node \u00b2; the cluster has gpu-1, gpu-2"),
    ],
)
def test_nodes_that_are_not_there(tmp_path, wanted, sentence):
    record = tmp_path / "nodes.json"
    record.write_text(
        json.dumps([{"name": name, "address": address} for name, address in NODES.items()]), encoding="utf-8"
    )
    with pytest.raises(SystemExit, match=sentence):
        program.choose(wanted, record)
    with pytest.raises(SystemExit, match=r"absent\.json is missing; role allreduce\.gpu\.cluster_ssh writes it"):
        program.choose(wanted, tmp_path / "absent.json")
