# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which job has which GPU: as the programs of Slurm write it, one job after another, in shadow mode too, and after a power cut."""

import json
import shutil
import subprocess
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.slurm import job_metrics, program

UUIDS = ["GPU-aa", "GPU-bb"]


class Node:
    """A node with two GPUs, a directory for textfiles, and processes of Slurm's as a test names them."""

    def __init__(self, place, mode="act"):
        self.place, self.said = place, []
        for name in ("state", "textfiles", "proc", "dev"):
            (place / name).mkdir()
        for minor, uuid in enumerate(UUIDS):
            gpu = place / "proc/driver/nvidia/gpus" / f"0000:0{minor + 1}:00.0"
            gpu.mkdir(parents=True)
            (gpu / "information").write_text(f"Model: \t A40\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n")
        declared = {"hook_mode": mode, "textfile_directory": str(place / "textfiles")}
        (place / "health.json").write_text(json.dumps(declared))
        self.places = program.Places(
            str(place / "health.json"), str(place / "state"), FileTree(str(place / "proc")), str(place / "dev"), "libnone.so.1", program.open_nvml
        )  # fmt: skip

    def run(self, name, job, gpus="0", user="ada"):
        environment = {"SLURM_JOB_ID": job, "SLURM_JOB_UID": "0", "SLURM_JOB_USER": user, "SLURM_JOB_GPUS": gpus}
        return program.main([name], self.places, environment, self.said.append)

    def check(self):
        return program.main(["check", "n1"], self.places, {}, self.said.append)

    def step(self, job, uid=0):
        one = self.place / "proc" / str(1000 + int(job))
        one.mkdir(exist_ok=True)
        (one / "cmdline").write_text(f"slurmstepd: [{job}.extern]\0")
        (one / "status").write_text(f"Name:\tslurmstepd\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")

    def jobs(self):
        """{(job, user, device, UUID)} of the metric."""
        path = self.place / "textfiles" / job_metrics.TEXTFILE
        lines = path.read_text().splitlines() if path.exists() else []
        assert all(line.endswith(" 1") for line in lines if not line.startswith("#"))
        return {tuple(line.split('"')[1::2]) for line in lines if not line.startswith("#")}


@pytest.fixture(params=["act", "shadow"])
def node(request, tmp_path):
    return Node(tmp_path, request.param)


def test_a_job_has_its_gpus_until_it_ends(node):
    assert node.run("prolog", "7", "0,1") == 0
    assert node.jobs() == {("7", "ada", "nvidia0", "GPU-aa"), ("7", "ada", "nvidia1", "GPU-bb")}
    assert node.run("epilog", "7", "0,1") == 0
    assert node.jobs() == set()
    assert node.run("prolog", "8", "1", 'o"hara') == 0
    assert '\\"hara' in (node.place / "textfiles" / job_metrics.TEXTFILE).read_text()


def test_two_jobs_share_a_node(node):
    assert [node.run("prolog", "7", "0"), node.run("prolog", "10", "1"), node.run("epilog", "7", "0")] == [0, 0, 0]
    assert node.jobs() == {("10", "ada", "nvidia1", "GPU-bb")}


@pytest.mark.parametrize("gpus", ["", "gpu:1g.5gb"])
def test_a_job_without_whole_gpus_is_none(node, gpus):
    assert node.run("prolog", "7", gpus) == 0
    assert node.jobs() == set() and node.said == []


def test_a_job_whose_epilog_never_ran_goes_with_the_next_check(node):
    for job in ("7", "8", "9"):
        node.run("prolog", job, "0")
    node.step("8")
    node.step("9", uid=1000)  # a user who calls their program so
    assert node.check() == 0 and {one[0] for one in node.jobs()} == {"7", "8", "9"}  # all of them may be beginning
    path = node.place / "state" / job_metrics.JOBS
    jobs = json.loads(path.read_text())
    path.write_text(json.dumps({name: dict(one, began=time.time() - 301) for name, one in jobs.items()}))
    assert node.check() == 0 and {one[0] for one in node.jobs()} == {"8"}


def test_a_job_that_is_refused_has_no_gpus(tmp_path):
    node = Node(tmp_path)
    lost = {"check": "gpu_answers", "subject": "GPU1", "severity": "failed", "action_class": "reboot"}
    document = {"findings": [lost], "verdict": "failed", "timestamp": time.time(), "duration_seconds": 0}
    (tmp_path / "state" / "health.json").write_text(json.dumps(document))
    (tmp_path / "state" / "slurm.json").write_text(
        json.dumps({"outcome": "out", "reason": "", "time": 0, "drains": []})
    )
    assert node.run("prolog", "7") == program.REFUSED
    assert node.jobs() == set()


def test_no_job_depends_on_it(node):
    (node.place / "state" / job_metrics.JOBS).write_text('{"7": 1, "x": {}}')
    assert node.run("prolog", "8") == 0
    assert node.said and node.said[0].startswith("the metric of jobs stays as it is: ")


def test_without_a_reader_nothing_is_written(node):
    (node.place / "textfiles").rmdir()
    assert node.run("prolog", "7") == 0
    assert node.said == [] and not list((node.place / "state").glob("slurm_jobs*"))


def test_prometheus_takes_it(node):
    node.run("prolog", "7", "0,1")
    text = (node.place / "textfiles" / job_metrics.TEXTFILE).read_text()
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed")
    process = subprocess.Popen(["promtool", "check", "metrics"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    said = process.communicate(text.encode())[1]
    assert process.returncode == 0, said
