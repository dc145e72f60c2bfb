# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of site that meet on a controller."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.runs import (
    Run,
    claim,
    is_alive,
    node_address,
    process_start,
)

FIRST = Run(
    "controller", "alice", 100, "5", "2026-11-27 09:00:00+01:00", {"gpu-1": "10.0.0.1:22", "gpu-2": "10.0.0.2:22"}
)
SECOND = replace(FIRST, user="bob", pid=200, nodes={"gpu-2": "10.0.0.2:22", "gpu-3": "10.0.0.3:22"})


def everyone(run):
    return True


def test_a_second_run_on_the_same_nodes_is_refused_and_leaves_nothing(tmp_path):
    assert claim(tmp_path, FIRST, everyone) == []
    [problem] = claim(tmp_path, SECOND, everyone)
    assert (problem.code, problem.subject) == ("run_in_progress", "gpu-2")
    assert (problem.detail["user"], problem.detail["pid"], problem.detail["since"]) == ("alice", 100, FIRST.since)
    assert [path.name for path in tmp_path.glob("*.json")] == ["controller-100.json"]


@pytest.mark.parametrize(
    "other",
    [
        replace(SECOND, nodes={"gpu-3": "10.0.0.3:22"}),  # with --limit
        replace(SECOND, nodes={"gpu-1": "10.0.1.1:22"}),  # a node of another cluster that has the same name
        replace(SECOND, nodes={"gpu-1": "10.0.0.1:2222"}),
        FIRST,  # plays of one run
    ],
)
def test_runs_that_share_no_machine_do_not_meet(tmp_path, other):
    assert claim(tmp_path, FIRST, everyone) == []
    assert claim(tmp_path, other, everyone) == []


def test_a_machine_is_known_by_its_address_whatever_its_name(tmp_path):
    assert claim(tmp_path, FIRST, everyone) == []
    assert claim(tmp_path, replace(SECOND, nodes={"head": "10.0.0.1:22"}), everyone)[0].subject == "gpu-1"


def test_what_a_dead_run_left_is_taken_over(tmp_path):
    assert claim(tmp_path, FIRST, everyone) == []
    assert claim(tmp_path, SECOND, lambda run: False) == []
    assert [path.name for path in tmp_path.glob("*.json")] == ["controller-200.json"]


def test_a_run_from_another_machine_is_believed_and_its_file_is_named(tmp_path):
    assert claim(tmp_path, replace(FIRST, machine="head"), everyone) == []
    [problem] = claim(tmp_path, SECOND, lambda run: False)
    assert problem.code == "run_elsewhere"
    assert problem.detail["file"] == str(tmp_path / "head-100.json")


def test_a_run_that_is_killed_while_it_leaves_its_file_leaves_no_half_of_it(tmp_path, monkeypatch):
    def killed(_self, _target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        claim(tmp_path, FIRST, everyone)
    assert list(tmp_path.glob("*.json")) == []


@pytest.mark.parametrize("text", ["", "null", "[]", "{", '{"pid": 1}', "\x00"])
def test_files_that_are_no_run_are_left_alone(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    assert claim(tmp_path, FIRST, everyone) == []
    assert (tmp_path / "x.json").exists()


@pytest.mark.parametrize("began", [True, False], ids=["with procfs", "without"])
def test_a_process_lives_until_it_ends(began):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        run = replace(FIRST, pid=process.pid, began=process_start(process.pid) if began else "")
        assert is_alive(run)
        assert not is_alive(replace(run, began="1"))  # another one that got its number
        process.communicate(b"\n")
    assert not is_alive(run)


def test_a_process_that_was_killed_is_dead_though_nobody_waited_for_it():
    """As in a container whose first process waits for none."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        run = replace(FIRST, pid=process.pid, began=process_start(process.pid))
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(run)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({}, "gpu-1:22"), ({"ansible_host": "10.0.0.1"}, "10.0.0.1:22"), ({"ansible_port": 2222}, "gpu-1:2222")],
)
def test_address(variables, expected):
    assert node_address("gpu-1", variables) == expected
