# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in a child process: what it says arrives, whatever becomes of it."""

import ctypes
import faulthandler
import glob
import os
import signal
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import child


def speak(say):
    say({"one": 1})
    say(["two"])


def crash(say):
    faulthandler.disable()  # pytest's would write pages about a crash that is meant
    say("before")
    ctypes.string_at(0)


def hang(say):
    say("before")
    time.sleep(60)


def raise_one(say):
    say("before")
    raise ValueError("broken")


def fill(say):
    say("x" * 300000)  # more than a pipe holds


@pytest.mark.parametrize(
    ("work", "said", "ended"),
    [
        (speak, [{"one": 1}, ["two"]], "done"),
        (crash, ["before"], f"signal {int(signal.SIGSEGV)}"),
        (hang, ["before"], "timeout"),
        (raise_one, ["before"], "failed"),
        (fill, ["x" * 300000], "done"),
        (lambda say: None, [], "done"),
    ],
    ids=["speaks", "crashes", "hangs", "raises", "fills the pipe", "says nothing"],
)
def test_every_end_is_an_answer(work, said, ended, capfd):
    began = time.time()
    assert child.bounded(work, 1) == (said, ended)
    assert time.time() - began < 10
    assert capfd.readouterr() == ("", "")  # nothing of the child's reaches the module's own answer


def _text(path):
    with open(path) as opened:
        return opened.read()


def children():
    """Processes of this one, those that have ended and nobody waited for among them; other tests may have left some."""
    return {number for path in glob.glob("/proc/self/task/*/children") for number in _text(path).split()}


def test_no_process_is_left():
    before = children()
    child.bounded(hang, 0.1)
    assert children() <= before


def test_a_crash_leaves_no_dump_of_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    child.bounded(crash, 5)
    assert list(tmp_path.iterdir()) == []


def test_a_child_of_a_child_holds_no_answer_back():
    """One that hangs in the kernel outlives its parent, whose pipe it must not hold open."""

    def files(say):
        say(len(os.listdir("/proc/self/fd")))

    assert child.bounded(lambda say: say(child.bounded(files, 5)), 5) == (
        [[child.bounded(files, 5)[0], "done"]],
        "done",
    )


def test_a_child_holds_nothing_of_its_parent(tmp_path):
    """One that hangs in the kernel goes on for as long: what it held too, such as a lock, would stay held."""
    with open(tmp_path / "lock", "w") as lock:
        assert child.bounded(lambda say: say(os.path.exists(f"/proc/self/fd/{lock.fileno()}")), 5) == ([False], "done")


@pytest.mark.parametrize(
    ("seconds", "step", "ended"), [(0.2, 3600, "done"), (5, -3600, "timeout")], ids=["forward", "back"]
)
def test_the_deadline_does_not_go_by_a_clock_that_is_set(seconds, step, ended, monkeypatch):
    began, real = time.monotonic(), time.time
    monkeypatch.setattr(time, "time", lambda: real() + step * (time.monotonic() - began > 0.1))

    def work(say):
        time.sleep(0.2)
        say("set")
        time.sleep(seconds)

    assert child.bounded(work, 1) == (["set"], ended)
