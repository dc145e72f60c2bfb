# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of site that do not come to their end: killed, met by another one, short of a node or of room on a disk.

Whatever was begun, the next run brings all nodes to the plan, and nothing temporary is left. Two hosts without a driver; the tests
run in the order of this file, each from where the one before left the hosts.
"""

import json
import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml
from cluster import KEEP, Cluster, Run

from tests.lab import wheels

pytestmark = pytest.mark.lab

SITE = "playbooks/site.yml"
SETTINGS = {
    "gpu_stack_request": {"pytorch": "2.13.0", "pytorch_index": "cpu"},
    "nvidia_driver_without_gpu": False,
    "base_packages": ["tree"],
    "base_kernel_headers": False,
    "tuning_state": "present",
    "firewall_state": "present",
    "health_state": "present",
    "health_textfile_create": True,
}
PYTHON = "/opt/allreduce/envs/main/bin/python"
INSTALLING = "frameworks : Install environment main"
NOTES = Path.home() / ".ansible" / "allreduce" / "runs"
# What is being done when the controller is killed, and how many seconds after the task began. In the order of site: each run goes on
# where the one before was killed.
MOMENTS = [
    ("base : Install packages", 4),
    ("cluster_ssh : Ensure the user's key pair", 0.3),
    ("cluster_ssh : Authorize the keys of all nodes, and install their host keys", 0.3),
    ("python_env : Install uv", 3),
    ("frameworks : Solve environment main", 1),
    ("frameworks : Write the locks on the controller", 0),
    ("frameworks : Find the nodes with the same directory", 0.1),
    ("frameworks : Download the wheels", 0.6),
    ("frameworks : Copy the wheels from", 0.6),
    (INSTALLING, 5),
    ("frameworks : Remove the wheels that nodes gave each other", 0),
    ("frameworks : Activate environment main", 2),
    ("tuning : Apply the settings and record the previous values", 0.4),
    ("firewall : Apply the firewall rules and record the previous state", 0.4),
    ("health : Install the program, its declaration and its units", 0.2),
]
# Names of what is on its way to its place; Ansible's own directories are those of its connection.
LEFT = r"""
find /etc /opt/allreduce /var/lib/allreduce /home/trainer /root -xdev \( -name '*.part' -o -name '*.new' -o -name '*.allreduce-new' \
  -o -name '.shared-*' -o -name '.ansible_tmp*' -o -name 'tmp????????' -o -name '.main.link' -o -name '*.next' -o -name '*.next.pub' \) \
  -not -path '*/site-packages/*' 2>/dev/null
ls -d /opt/allreduce/cache/environments/* 2>/dev/null
"""


class Interrupted(Cluster):
    """Two hosts, and runs of site on them that do not come to their end."""

    def __init__(self):
        wheels.ensure("horovod")  # psutil is one of them
        super().__init__("interrupted", 2)
        settings = self.inventory / "group_vars" / "gpu_nodes.yml"
        settings.write_text(yaml.safe_dump(SETTINGS, sort_keys=False), encoding="utf-8")

    def site(self, *options, **variables):
        return self.play(SITE, "-e", json.dumps(variables), *options)

    def recovers(self, **variables):
        """Site succeeds on all nodes, and leaves nothing temporary."""
        run = self.site(**variables)
        assert run.status == 0, run.output[-6000:]
        assert {(one["failed"], one["unreachable"]) for one in run.recap.values()} == {(0, 0)}, run.output[-3000:]
        assert self.left() == []
        return run

    def converges(self, **variables):
        """It does, and changes nothing the next time."""
        self.recovers(**variables)
        again = self.recovers(**variables)
        assert {one["changed"] for one in again.recap.values()} == {0}, again.output

    @contextmanager
    def begun(self, task, seconds, **variables):
        """A run of site, SECONDS after a task began, whose name begins with TASK; what it prints is added to the list that is yielded."""
        process = self.start(SITE, "-e", json.dumps(variables))
        output = []
        for line in process.stdout:
            output.append(line)
            if line.startswith(f"TASK [allreduce.gpu.{task}"):
                break
        else:
            raise AssertionError("".join(output)[-6000:])
        time.sleep(seconds)
        yield process, output
        output.append(process.stdout.read())
        process.wait()

    def killed(self, task, seconds, **variables):
        """What a run of site printed that was killed, and the task in which it was: ansible-playbook, its workers, their connections."""
        with self.begun(task, seconds, **variables) as (process, output):
            assert process.poll() is None, "".join(output)[-6000:]
            kill_with_children(process.pid)
        said = "".join(output)
        assert process.returncode == -signal.SIGKILL
        assert "fatal:" not in said, said[-6000:]
        assert self.noted() == [process.pid]
        last = re.findall(r"^(?:TASK|RUNNING HANDLER) \[(?:allreduce\.gpu\.)?(.*?)\] \*", said, re.M)[-1]
        print(f"killed in {last}, {seconds} s after {task} began")
        return said, last

    def noted(self):
        """Process numbers of the runs that are noted for these hosts on the controller."""
        notes = [json.loads(path.read_text(encoding="utf-8")) for path in NOTES.glob("*.json")]
        return [note["pid"] for note in notes if set(self.hosts) & set(note["nodes"])]

    def left(self):
        """What is on its way to its place, on hosts and controller."""
        there = [f"{host}:{path}" for host in self.hosts for path in self.on(host, LEFT, check=False).split()]
        here = [
            path
            for path in self.inventory.glob("**/.*")
            if ".reports" not in path.parts and path.name != ".known_hosts"
        ]
        return there + list(map(str, here))

    def works(self):
        """Whether the environment in use has what its lock names, and the nodes reach each other as the training user."""
        for host in self.hosts:
            self.on(host, f"cd /tmp && {PYTHON} -c 'import torch'")
            for other in self.hosts:
                reached = self.on(host, f"runuser -u trainer -- ssh -o BatchMode=yes {other} hostname", check=False)
                assert reached.strip() == other, f"{host} does not reach {other}"

    def verifies(self, **variables):
        run = self.play("playbooks/verify.yml", "-e", json.dumps(variables))
        assert run.status == 0, run.output[-6000:]


def kill_with_children(pid):
    """SIGKILL for a process and all that it has started, wherever their sessions are; what has left it stays."""
    rows = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.split("\n")
    children = {}
    for one, parent in (map(int, row.split()) for row in rows if row.strip()):
        children.setdefault(parent, []).append(one)
    doomed = [pid]
    for one in doomed:
        doomed += children.get(one, [])
    for one in doomed:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


@pytest.fixture(scope="module")
def site():
    made = Interrupted()
    yield made
    if not KEEP:
        made.down()


@pytest.mark.parametrize(("task", "seconds"), MOMENTS, ids=[task for task, _seconds in MOMENTS])
def test_10_the_controller_is_killed(site, task, seconds):
    _said, last = site.killed(task, seconds)
    # Where it takes seconds, it was in the middle.
    assert seconds < 1 or last.startswith(task)


def test_11_the_next_run_brings_the_nodes_to_the_plan_and_leaves_nothing(site):
    site.converges()
    site.works()
    site.verifies()


@pytest.fixture
def bare(site):
    """Both hosts without their environment, and the second."""
    for host in site.hosts:
        site.on(host, "rm -rf /opt/allreduce/envs /opt/allreduce/cache /etc/allreduce/locks")
    return site.hosts[1]


@pytest.mark.usefixtures("bare")
def test_20_a_second_run_is_refused_and_the_first_goes_on(site):
    with site.begun(INSTALLING, 0) as (first, _output):
        second = site.site()
        assert first.poll() is None, "the first had ended"
    assert second.status != 0
    assert f"(process {first.pid})" in second.words, second.output[-3000:]
    assert all(one["changed"] == 0 for one in second.recap.values()), second.output[-3000:]
    assert first.returncode == 0
    site.converges()


def test_21_a_node_that_falls_silent_ends_the_run_in_bounded_time(site, bare):
    try:
        with site.begun(INSTALLING, 2) as (process, output):
            site.cut_off(bare)
            began = time.monotonic()
        print(f"the run ended {time.monotonic() - began:.0f} s after {bare} fell silent")
    finally:
        site.reconnect(bare)
    said = "".join(output)
    assert process.returncode != 0
    recap = Run(process.returncode, said).recap
    assert recap[bare]["unreachable"] == 1, said[-3000:]
    assert recap[site.hosts[0]]["unreachable"] == recap[site.hosts[0]]["failed"] == 0, said[-3000:]
    site.converges()
    site.works()


@contextmanager
def full(site, host, place):
    """A disk for a directory of a host that has no room."""
    site.on(
        host,
        f"mkdir -p {place} && mount -t tmpfs -o size=1m,mode=755 tmpfs {place}; dd if=/dev/zero of={place}/.full 2>/dev/null || :",
    )
    try:
        yield
    finally:
        site.on(host, f"umount {place}")


def test_22_a_disk_without_room_for_a_lock_fails_its_node_alone(site, bare):
    with full(site, bare, "/etc/allreduce/locks"):
        run = site.site()
        in_use = site.on(bare, "ls -A /opt/allreduce/envs").split()
    assert run.status != 0
    assert (run.recap[bare]["failed"], run.recap[site.hosts[0]]["failed"]) == (1, 0)
    assert "was not activated, as the disk with /etc/allreduce/locks is full" in run.words, run.output[-3000:]
    assert "main" not in in_use
    site.converges()
    site.works()


def test_23_a_disk_without_room_for_wheels_is_refused_before_anything_changes(site, bare):
    with full(site, bare, "/opt/allreduce/cache"):
        run = site.site()
    assert run.status != 0
    assert f"{bare}: 0 MiB are free under /opt/allreduce/cache" in run.words, run.output[-3000:]
    assert {one["changed"] for one in run.recap.values()} == {0}
    site.converges()
    site.works()
