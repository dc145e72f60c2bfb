# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job left on its GPUs: whose processes are ended, and whose are not."""

import os
import subprocess
import sys

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.slurm import leftovers
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording
from ansible_collections.allreduce.gpu.tests.lab.nvml.fault import said

PROC = FileTree("/proc")
ADA, GRACE = 1000, 1001


class Processes:
    """A recorded /proc. GPUs are files, of which two stand for others as devices."""

    def __init__(self, place):
        self.place = place
        self.add(1, 0, 0, "init")

    def add(self, pid, parent, uid, title="python train.py", devices=(), job=None):
        directory = self.place / str(pid)
        (directory / "fd").mkdir(parents=True)
        for number, device in enumerate(devices):
            (directory / "fd" / str(number)).symlink_to(device)
        (directory / "status").write_text(
            f"Name:\tx\nState:\tS (sleeping)\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n", "utf-8"
        )
        (directory / "stat").write_text(f"{pid} (a b) c) S {parent} {'0 ' * 17}{pid * 10} 0\n", "utf-8")
        (directory / "cmdline").write_text(title.replace(" ", "\0") if "slurmstepd" not in title else title, "utf-8")
        (directory / "environ").write_text("HOME=/home\0" + (f"SLURM_JOB_ID={job}\0" if job else ""), "utf-8")

    def left(self, job="7", uid=ADA, device="/dev/zero"):
        wanted = {os.stat(device).st_rdev}
        return [pid for pid, _start in leftovers.left_by(FileTree(str(self.place)), job, uid, wanted)]


@pytest.fixture
def processes(tmp_path):
    return Processes(tmp_path)


def test_what_left_its_step_is_the_job_s(processes):
    processes.add(50, 1, ADA, devices=["/dev/zero"])
    processes.add(51, 1, ADA, devices=["/dev/null"])  # another GPU
    processes.add(52, 1, GRACE, devices=["/dev/zero"])  # another user
    processes.add(53, 1, 0, "nvidia-persistenced", devices=["/dev/zero"])
    assert processes.left() == [50]


def test_a_job_of_the_same_user_keeps_its_own(processes):
    processes.add(40, 1, 0, "slurmstepd: [8.batch]")
    processes.add(41, 40, ADA, "bash script")
    processes.add(42, 41, ADA, devices=["/dev/zero"], job=8)
    # Of one that has left its step it is not known whose it is, unless it says so.
    processes.add(50, 1, ADA, devices=["/dev/zero"])
    processes.add(51, 1, ADA, devices=["/dev/zero"], job=7)
    processes.add(52, 1, ADA, devices=["/dev/zero"], job=8)
    assert processes.left() == [51]
    assert processes.left(job="8") == [42, 50, 51, 52]


def test_a_job_of_another_user_does_not_matter(processes):
    processes.add(40, 1, 0, "slurmstepd: [8.0]")
    processes.add(41, 40, GRACE, "bash script", devices=["/dev/zero"])
    processes.add(50, 1, ADA, devices=["/dev/zero"])
    assert processes.left() == [50]


def test_a_step_of_the_job_that_still_ends_is_the_job_s(processes):
    processes.add(40, 1, 0, "slurmstepd: [7.extern]")
    processes.add(41, 40, ADA, devices=["/dev/zero"])
    assert processes.left() == [41]


def test_root_s_jobs_leave_nothing(processes):
    processes.add(50, 1, 0, "dcgm", devices=["/dev/zero"])
    assert processes.left(uid=0) == []


def test_who_calls_itself_a_step_is_none(processes):
    processes.add(40, 1, ADA, "slurmstepd: [9.batch]", devices=["/dev/zero"])
    assert processes.left() == [40]


@pytest.mark.parametrize(("text", "expected"), [
    ("0,3", [0, 3]), ("", []), (None, []), ("MIG-a1b2", []), ("2", [2]),
])  # fmt: skip
def test_the_gpus_of_a_job(text, expected):
    assert leftovers.minors(text) == expected


def test_the_devices_of_gpus(tmp_path):
    (tmp_path / "nvidia0").symlink_to("/dev/zero")
    assert leftovers.devices([0, 1], str(tmp_path)) == {os.stat("/dev/zero").st_rdev: 0}


HOLDS = "import os, sys, time; os.open('/dev/zero', os.O_PATH); print(flush=True); time.sleep(60)"


def test_a_real_process_is_found_and_ended():
    process = subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE)
    process.stdout.readline()
    found = leftovers.holders(PROC, os.getuid(), {os.stat("/dev/zero").st_rdev})
    mine = [one for one in found if one[0] == process.pid]
    assert mine
    # A number that another process got in the meantime is not killed.
    assert leftovers.clear(PROC, [(process.pid, "1")], seconds=0) == [] and process.poll() is None
    assert leftovers.clear(PROC, mine) == []
    assert process.wait() == -9


def test_what_stays_is_told():
    process = subprocess.Popen(["sleep", "60"])
    found = [(process.pid, leftovers.start_of(PROC, process.pid))]
    assert leftovers.clear(PROC, found, kill=lambda *_arguments: None, seconds=0.1) == found
    process.kill()
    process.wait()


@pytest.mark.parametrize(("settings", "expected"), [
    ([("memory_used_mib", "600 0")], []),
    ([("memory_used_mib", "9000 0")], [1]),
    ([("memory_used_mib", "9000 0"), ("processes", "77:8500")], []),
    ([("memory_used_mib", "9000 0"), ("processes", "77:500")], [1]),
    ([("memory_used_mib", "9000 0"), ("processes", "!999")], []),
    ([("memory_used_mib", "!15")], []),
])  # fmt: skip
def test_memory_that_no_process_has(tmp_path, library, monkeypatch, settings, expected):
    monkeypatch.setenv("SIMULATED_NVML", str(tmp_path / "profile"))
    recording.record(said(machines.a40_pcie(), 1, *settings), tmp_path)
    assert leftovers.unaccounted([0, 1], str(library)) == expected
    assert leftovers.unaccounted([0], str(library)) == []


def test_a_driver_that_hangs_says_nothing(tmp_path, library, monkeypatch):
    monkeypatch.setenv("SIMULATED_NVML", str(tmp_path / "profile"))
    monkeypatch.setattr(leftovers, "ANSWER", 0.5)
    recording.record(said(machines.a40_pcie(), 1, ("hanging", "3")), tmp_path)
    assert leftovers.unaccounted([0, 1], str(library)) == []
