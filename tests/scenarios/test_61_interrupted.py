# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of site that does not come to its end: its controller is killed, a node is lost, a disk is full, or it meets another run.

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
from fault_host import QUICK_LOCKS, FaultHost, stopped

from tests.lab import podman, wheels

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
ENVIRONMENTS, WHEELS, LOCKS = "/opt/allreduce/envs", "/opt/allreduce/cache/environments", "/etc/allreduce/locks"
PYTHON = f"{ENVIRONMENTS}/main/bin/python"
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
    ("frameworks : Install environment main", 5),
    ("frameworks : Remove the wheels that nodes gave each other", 0),
    ("frameworks : Activate environment main", 2),
    ("tuning : Apply the settings and record the previous values", 0.4),
    ("firewall : Apply the firewall rules and record the previous state", 0.4),
    ("health : Install the program, its declaration and its units", 0.2),
]
# On nodes that are as planned, another environment and new keys.
CHANGED = {"python_env_packages": ["psutil"], "cluster_ssh_rotate": "2026-12"}
MOMENTS_OF_A_CHANGE = [
    ("cluster_ssh : Authorize the new keys in addition to the old ones", 0.4),
    ("cluster_ssh : Replace the key pair", 0.3),
    ("frameworks : Create environment main", 0.3),
    ("frameworks : Install environment main", 0.3),
    ("frameworks : Activate environment main", 1),
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
        here = [path for path in self.inventory.rglob(".*") if path.name not in (".reports", ".known_hosts")]
        return there + list(map(str, here))

    def in_use(self):
        return [self.on(host, f"readlink {ENVIRONMENTS}/main").strip() for host in self.hosts]

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

    def forget_environment(self, *hosts):
        for host in hosts:
            self.on(host, f"rm -rf {ENVIRONMENTS}/main {ENVIRONMENTS}/.main-* {LOCKS}/main.txt")

    @contextmanager
    def full(self, host, place, size, keep="true"):
        """A directory of a host on a disk of its own, with what was in it if there is room, and nothing free."""
        self.on(
            host, f"mkdir -p {place} && cp -a {place} /run/kept && mount -t tmpfs -o size={size},mode=755 tmpfs {place}"
        )
        self.on(host, f"cp -a /run/kept/. {place}/ && {keep}; head -c 1g /dev/zero > {place}/filler", check=False)
        try:
            yield
        finally:
            self.on(host, f"umount {place}; rm -rf /run/kept")


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


@pytest.mark.parametrize(("task", "seconds"), MOMENTS_OF_A_CHANGE, ids=[task for task, _seconds in MOMENTS_OF_A_CHANGE])
def test_20_the_controller_is_killed_in_a_change(site, task, seconds):
    site.killed(task, seconds, **CHANGED)
    site.works()


def test_21_the_next_run_finishes_the_change(site):
    site.converges(**CHANGED)
    site.works()
    site.verifies(**CHANGED)
    for host in site.hosts:
        site.on(host, f"{PYTHON} -c 'import psutil'")


@pytest.mark.parametrize(
    ("number", "task", "seconds"),
    [(1, "frameworks : Copy the wheels from", 0.3), (0, "frameworks : Download the wheels", 0.3)],
    ids=["one that receives", "the one that gives"],
)
def test_30_a_node_is_lost(site, number, task, seconds):
    """It answers no more, as with a broken cable: the other one is finished, and the last lines name the one that was lost."""
    lost, other = site.hosts[number], site.hosts[1 - number]
    site.forget_environment(*site.hosts[number:])
    known = site.on(other, "cat ~trainer/.ssh/authorized_keys /etc/ssh/ssh_known_hosts /etc/hosts")
    began = time.monotonic()
    try:
        with site.begun(task, seconds, **CHANGED) as (process, output):
            podman.podman("pause", lost)
    finally:
        podman.podman("unpause", lost)
    run = Run(process.returncode, "".join(output))
    print(f"ended {time.monotonic() - began:.0f} s after it began, with {run.status}")
    assert run.status == 4, run.output[-6000:]
    assert run.recap[lost]["unreachable"] == 1
    assert (run.recap[other]["failed"], run.recap[other]["unreachable"]) == (0, 0), run.output[-6000:]
    site.on(other, f"{PYTHON} -c 'import torch, psutil'")
    assert site.on(other, "cat ~trainer/.ssh/authorized_keys /etc/ssh/ssh_known_hosts /etc/hosts") == known
    site.recovers(**CHANGED)
    site.works()


def test_40_the_disk_of_the_nodes_lock_is_full(site):
    """Going back to an environment that was kept: nothing is fetched, and its lock is all that needs room."""
    host, before = site.hosts[1], site.in_use()
    with site.full(host, LOCKS, "64k"):
        lock = site.on(host, f"cat {LOCKS}/main.txt")
        run = site.site(python_env_packages=[])
        assert (site.in_use()[1], site.on(host, f"cat {LOCKS}/main.txt")) == (before[1], lock)
        assert site.on(host, f"ls {LOCKS}").split() == ["filler", "main.txt"]
    assert run.status == 2
    assert (
        f"Environment main was not activated, as the disk with {LOCKS} is full (0 KiB are free): free some space there; the one before it"
        f" stays in use, {before[1]}."
    ) in run.words, run.output[-4000:]
    site.recovers(python_env_packages=[])
    assert site.in_use()[1] != before[1]


def test_41_the_disk_for_wheels_is_too_small(site):
    host = site.hosts[1]
    site.forget_environment(host)
    with site.full(host, WHEELS, "64m", keep="exit"):
        run = site.site()
        assert site.on(host, f"ls {ENVIRONMENTS}").split() == []
    assert run.status == 2
    assert re.search(
        rf"Environment main cannot be installed on {host}: {WHEELS}/main has 6\d MiB free, and [\d.]+ [MG]iB are needed: free some space",
        run.words,
    ), run.output[-4000:]
    assert run.recap[site.hosts[0]]["failed"] == 0


def test_42_the_disk_for_wheels_becomes_full_while_they_come(site):
    host = site.hosts[1]
    fill = f"until ls {WHEELS}/main/*.part; do sleep 0.02; done; head -c 2g /dev/zero > {WHEELS}/filler"
    site.on(host, f"mkdir -p {WHEELS} && mount -t tmpfs -o size=1g,mode=755 tmpfs {WHEELS}")
    try:
        site.on(host, f"systemd-run -q --collect --unit=fill sh -c '{fill}'")
        run = site.site()
        assert site.on(host, f"ls {ENVIRONMENTS}").split() == []
    finally:
        site.on(host, f"systemctl stop fill; umount {WHEELS}")
    assert run.status == 2
    assert re.search(
        rf"Environment main cannot be installed on {host}: {WHEELS}/main .*\(.*No space left on device.*\): free some space",
        run.words,
    )
    site.recovers()
    site.works()


# A package whose script takes as long as a file is there, as those of unattended upgrades may.
SLOW = "while [ -e /run/slow ]; do sleep 0.2; done"
SLOW_DEB = f"""
mkdir -p /root/slow/DEBIAN && cd /root/slow
printf 'Package: slow\\nVersion: 1\\nArchitecture: all\\nMaintainer: root\\nDescription: takes its time\\n' > DEBIAN/control
printf '#!/bin/sh\\n{SLOW}\\n' > DEBIAN/postinst && chmod 755 DEBIAN/postinst && dpkg-deb --build -q /root/slow /root/slow.deb
"""
SLOW_RPM = f"""
printf 'Name: slow\\nVersion: 1\\nRelease: 1\\nSummary: takes its time\\nLicense: none\\nBuildArch: noarch\\n' > /root/slow.spec
printf '%%description\\n%%post\\n{SLOW}\\n%%files\\n' >> /root/slow.spec
rpmbuild -bb --quiet --define '_rpmdir /root' --define '_rpmfilename slow.rpm' /root/slow.spec
"""


@contextmanager
def upgrades(host, build, install):
    """Somebody else's package manager in the middle of its work, until the file /run/slow goes; its process number."""
    host(f"{build}; touch /run/slow; systemd-run -q --collect --unit=upgrades {install}")
    try:
        host("timeout 60 sh -c 'until pgrep -f \"[s]low.postinst|[r]pm-tmp\"; do sleep 0.2; done'")
        yield host("systemctl show --value -p MainPID upgrades").strip()
    finally:
        host("rm -f /run/slow; while systemctl is-active -q upgrades; do sleep 0.2; done", check=False)


def test_45_another_apt_is_in_the_middle_of_its_work(site):
    """It has dpkg's locks, and dpkg says that it was interrupted: waited for, and not repaired under its hands."""
    first, second = site.hosts
    apt = "env DEBIAN_FRONTEND=noninteractive apt-get -y -q install /root/slow.deb"
    with upgrades(lambda *words, **more: site.on(second, *words, **more), SLOW_DEB, apt) as pid:
        refused = site.site("--tags", "base", base_packages=["pv"], gpu_package_lock_timeout=5)
        assert refused.status == 2
        assert (
            f"on {second}: another package manager holds the lock (process {pid}, apt-get -y -q install /root/slow.deb): let it finish"
            in refused.words
        )
        assert (refused.recap[first]["failed"], refused.recap[second]["failed"]) == (0, 1)
        site.on(second, "systemd-run -q --collect --on-active=60 rm /run/slow")
        run = site.site("--tags", "base", base_packages=["pv"])
    assert run.status == 0, run.output[-4000:]
    for host in site.hosts:
        assert site.on(host, "dpkg --audit; dpkg-query -W -f '${Status}' pv") == "install ok installed"


@contextmanager
def full_here(place, size, *keep):
    """A directory of the controller on a full disk of its own, with the files KEEP in it."""
    place.mkdir(exist_ok=True)
    texts = {path.name: path.read_bytes() for path in keep}
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    try:
        for name, text in texts.items():
            (place / name).write_bytes(text)
        subprocess.run(f"head -c 1g /dev/zero > {place}/filler", shell=True, check=False, stderr=subprocess.DEVNULL)
        yield
        assert {path.name: path.read_bytes() for path in place.iterdir() if path.name != "filler"} == texts
    finally:
        subprocess.run(["umount", place], check=True)


def test_43_the_controllers_disk_is_full_when_a_lock_of_the_stack_is_written(site, tmp_path):
    before = site.fingerprints()
    with full_here(tmp_path / "stack", "32k", site.inventory / "stack.lock.yml"):
        lock = tmp_path / "stack" / "stack.lock.yml"
        other = {**SETTINGS["gpu_stack_request"], "python": "3.11"}
        run = site.site(stack_lock=str(lock), stack_lock_renew=True, gpu_stack_request=other)
    assert run.status == 2
    assert f"{lock} was not written, as its disk is full (0 KiB are free): free some space there" in run.words, (
        run.output[-4000:]
    )
    assert site.fingerprints() == before


def test_44_the_controllers_disk_is_full_when_locks_of_environments_are_written(site):
    kept = site.inventory / "python.locks"
    locks = sorted(kept.iterdir())
    assert len(locks) == 2, locks
    with full_here(kept, "16k"):
        run = site.site()
    assert run.status == 2
    assert re.search(
        rf"{kept}/\w+\.txt was not written, as its disk is full \(0 KiB are free\): free some space there", run.words
    ), run.output[-4000:]
    assert sorted(kept.iterdir()) == locks


def test_50_two_runs_at_once(site, tmp_path):
    """From two copies of the inventory on one controller: one goes on, the other is refused."""
    elsewhere = site.edit_inventory(tmp_path / "copy", lambda content: None)
    runs = [site.start(SITE), site.start(SITE, inventory=elsewhere)]
    ended = [Run(None, process.communicate()[0]) for process in runs]
    status = {process.returncode: (process, run) for process, run in zip(runs, ended, strict=True)}
    assert set(status) == {0, 2}, ended[0].output[-3000:] + ended[1].output[-3000:]
    first, refused = status[0][0], status[2][1]
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    assert re.search(
        rf"{user} has been running site on interrupted-1, interrupted-2 since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\S* \(process {first.pid}\); wait for its end",
        refused.words,
    ), refused.output[-3000:]
    assert {one["changed"] for one in refused.recap.values()} == {0}
    site.converges()


@pytest.fixture(scope="module")
def rocky():
    made = FaultHost("interrupted-rpm", "rocky8", "a40-pcie", {"driver": "none"})
    assert made.stack("base").status == 0
    yield made
    if not KEEP:
        made.down()


@pytest.mark.parametrize("program", ["dnf -y -q install /root/slow.rpm", "rpm -i /root/slow.rpm"], ids=["dnf", "rpm"])
def test_60_another_dnf_or_rpm_is_in_the_middle_of_its_work(rocky, program):
    """dnf waits for itself only; rpm's own lock, as PackageKit has it, is waited for by us."""
    rocky.run("rpm -e --nodeps slow; rpm -e --nodeps pciutils", check=False)
    with upgrades(rocky.run, SLOW_RPM, program) as pid:
        run = rocky.stack("base", **QUICK_LOCKS)
        said = stopped(
            run, "another package manager holds the lock", f"process {pid}, ", program.split()[-1], "let it finish"
        )
        print(said)
        rocky.run("systemd-run -q --collect --on-active=45 rm /run/slow")
        run = rocky.stack("base")
    assert run.status == 0, run.output[-4000:]
    assert rocky.run("rpm -q pciutils slow").count("\n") == 2
    rocky.is_sound()
