# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real processes, started as rank.py starts a script."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.training import stacks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.node import rank as rank_program

SCRIPT = """
import os, sys, threading, time
def wait_for_data():
    print(os.environ.get("PYTHONPATH"), "ALLREDUCE_STACK" in os.environ, {here!r} in sys.path, flush=True)
    time.sleep(60)
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
wait_for_data()
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    here = tmp_path / "run"
    (here / "logs").mkdir(parents=True)
    shutil.copy(Path(rank_program.__file__).with_name("sitecustomize.py"), here)
    monkeypatch.setattr(rank_program, "HERE", here)
    monkeypatch.setattr(rank_program, "LOGS", here / "logs")
    (here / "work").mkdir()
    (here / "work" / "train.py").write_text(SCRIPT.replace("{here!r}", repr(str(here))))
    processes = []

    def start(rank=0, script=here / "work" / "train.py", before=None):
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment.update({"PYTHONPATH": before} if before is not None else {})
        with monkeypatch.context() as patch:
            patch.setattr(os, "environ", environment)
            environment.update(rank_program.stack_variables(rank))
        process = subprocess.Popen(
            [sys.executable, "-u", str(script)], env=environment, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process

    start.logs = str(here / "logs")
    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("before", [None, "/x:/y"])
def test_the_stack_of_a_script_that_hangs(start, before):
    process = start(before=before)
    assert process.stdout.readline() == f"{before} False False\n"
    for _dummy in range(2):
        found = stacks.stacks(start.logs, os.getuid(), [0, 1])
        assert list(found) == [0]
        assert [frame.rpartition("/")[2] for frame in found[0]] == ["train.py:5 wait_for_data", "train.py:7 <module>"]
    assert process.poll() is None


def test_a_script_of_allreduce_run_is_not_asked(start, tmp_path):
    (tmp_path / "run" / "sitecustomize.py").unlink()
    assert rank_program.stack_variables(0) == {}


def test_the_environments_own_sitecustomize_is_imported(start, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("print('own', flush=True)")
    assert start(before=str(tmp_path / "own")).stdout.readline() == "own\n"


def test_a_process_that_does_not_handle_the_signal_is_left_alone(start):
    process = subprocess.Popen(["sleep", "60"])
    try:
        Path(start.logs, "rank0.stack").write_text(f"{process.pid}\n")
        assert stacks.stacks(start.logs, os.getuid(), [0]) == {}
        time.sleep(0.2)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("content", ["", "x", "1\n", "-1\n", "0\n", "9" * 30, "999999999\n"])
def test_what_a_user_may_have_written(start, content):
    Path(start.logs, "rank0.stack").write_text(content)
    assert stacks.stacks(start.logs, os.getuid(), [0]) == {}


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file(start, make):
    make(os.path.join(start.logs, "rank0.stack"))
    assert stacks.stacks(start.logs, os.getuid(), [0, 1]) == {}


def test_frames_of_the_thread_that_took_the_signal():
    text = (
        'Thread 0x1 (most recent call first):\n  File "/a/b.py", line 3 in f\n\n'
        'Current thread 0x2 (most recent call first):\n  File "/a/c.py", line 4 in g\n  File "/a/c.py", line ??? in <module>\n'
    )
    assert stacks.frames(text) == ["/a/c.py:4 g", "/a/c.py:??? <module>"]
    assert stacks.frames(text.partition("\n\n")[0]) == ["/a/b.py:3 f"]
    assert stacks.frames("x") == []
