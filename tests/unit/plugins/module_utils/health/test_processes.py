# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that hold a GPU's memory; the lab's faults have one of each kind, and those that are well."""

import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import processes
from ansible_collections.allreduce.gpu.plugins.module_utils.health.processes import read_processes, read_state
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.lab.nvml.fault import said
from ansible_collections.allreduce.gpu.tests.lab.nvml.host_faults import SESSION, process
from ansible_collections.allreduce.gpu.tests.lab.nvml.recording import write


def told(found):
    return [(one["check"], one["gpu"], one["measured"], one["action_class"]) for one in found["findings"]]


def test_a_process_is_named_with_its_memory(examine):
    machine = said(machines.hgx_h100(), 2, ("processes", "4711:71680 4712:512")).with_files(process(4712, SESSION % 6))
    assert told(examine(machine)) == [
        ("stale_processes", "GPU2", "process 4711 with 71680 MiB", "reset"),
        ("stale_processes", "GPU2", "process 4712 with 512 MiB", "application"),
    ]


def test_in_a_container_the_numbers_mean_nothing(examine, measure, tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "FIRST_NAMESPACE", "pid:[4026532999]")
    found = examine(said(machines.hgx_h100(), 2, ("processes", "4711:71680")))
    assert told(found) == []
    assert "stale_processes" not in [entry["check"] for entry in found["judged"]]


@pytest.mark.parametrize("again", [True, False])
def test_one_that_just_ended_is_asked_for_again(tmp_path, again):
    """NVML may tell it a moment longer."""
    (tmp_path / "self" / "ns").mkdir(parents=True)
    (tmp_path / "self" / "ns" / "pid").symlink_to(processes.FIRST_NAMESPACE)
    answers = [{"a": {"processes": [{"pid": 5, "memory_mib": 1}]}}, {"a": {"processes": []}}]
    asked = []

    def read():
        asked.append(1)
        return answers[0 if again else min(len(asked) - 1, 1)]

    dummy, states = read_processes(read, FileTree(str(tmp_path)), FileTree(str(tmp_path)), seconds=0)
    assert (states, len(asked)) == ({5: "ended"} if again else {}, 2)


def test_nothing_is_asked_again_where_all_run(tmp_path):
    asked = []
    dummy, states = read_processes(lambda: asked.append(1) or {}, FileTree(str(tmp_path)), FileTree(str(tmp_path)))
    assert (states, len(asked)) == (None, 1)


def test_a_real_process_runs(tmp_path):
    assert read_state(os.getpid(), FileTree("/proc"), FileTree(str(tmp_path))) == "running"


@pytest.mark.parametrize(
    ("cgroup", "state"),
    [
        (SESSION % "c3", "logged_out"),
        (SESSION % "c3" + "/nested", "logged_out"),
        ("1:name=systemd:" + SESSION % "c3", "logged_out"),
        ("/system.slice/session-c3.scope.service", "running"),
    ],
)
def test_the_session_of_a_process(tmp_path, cgroup, state):
    write(tmp_path, {name[5:]: text for name, text in process(9, cgroup).items()})
    (tmp_path / "run" / "systemd" / "sessions").mkdir(parents=True)
    tree = FileTree(str(tmp_path))
    assert read_state(9, tree, tree) == state
    assert read_state(9, tree, FileTree(str(tmp_path / "nowhere"))) == "running", "without logind nobody knows"


def test_a_process_that_proc_hides_has_not_ended(tmp_path):
    """With hidepid=2 and a group for which it does not hold, the program of role health, without CAP_SYS_PTRACE, sees no process of a user."""

    class Hiding(FileTree):
        def exists(self, path):
            return False

    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    states = [read_state(pid, Hiding("/proc"), FileTree(str(tmp_path))) for pid in (1, os.getpid(), child)]
    assert states == ["running", "running", "ended"]
