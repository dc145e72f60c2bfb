# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong with a training on two hosts, and with the environment that one gives to the other: said, ended, repaired."""

import time

import pytest
from training_hosts import RUNS

pytestmark = pytest.mark.lab

ENVIRONMENTS = "/opt/allreduce/envs"
ENVIRONMENT = f"{ENVIRONMENTS}/main"
WHEELS = "/opt/allreduce/cache/environments/main"
JOB = "base,python_env,frameworks,cluster_ssh"
RAISES = """
import os, time
import torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    raise ValueError("sample 17 has no label")
dist.barrier()
time.sleep(600)
"""
SLEEPS = """
import time
import torch.distributed as dist
dist.init_process_group("gloo")
print("asleep", flush=True)
dist.barrier()
time.sleep(900)
"""
# A byte of the largest wheel changes whenever it is whole.
CORRUPT = f"while sleep 0.1; do for one in {WHEELS}/torch-*.whl; do [ -s $one ] && printf x | dd of=$one bs=1 seek=5000000 conv=notrunc; done; done"

# The plan finds room enough; it is taken away as soon as the environment is being unpacked.
FILLS = f"until ls -d {ENVIRONMENTS}/.main-*/lib && mount -o remount,size=300m {ENVIRONMENTS}; do sleep 0.05; done"


def site(two):
    return two.play("playbooks/site.yml", "--tags", JOB)


def packages(two, host):
    return two.on(host, f"ls {ENVIRONMENT}/lib/python3*/site-packages | grep dist-info")


def nothing_started(two, said):
    assert not any(two.on(host, f"ls {RUNS}", check=False) for host in two.hosts), said
    two.is_empty()


@pytest.mark.parametrize("launcher", ["torchrun", "elastic"])
def test_the_traceback_of_the_rank_that_failed_first(two, script, launcher):
    status, said, result = two.trained(launcher, train_script=script("train.py", RAISES))
    assert status != 0
    failure = result["failure"]
    assert (failure["node"], failure["rank"]) == (two.hosts[1], 1), failure
    assert "ValueError: sample 17 has no label" in "\n".join(failure["tail"])
    assert said.index("sample 17 has no label") > 0
    two.is_empty()


@pytest.mark.parametrize("number", [0, 1])
def test_a_killed_rank_ends_the_run(two, script, number):
    process = two.train("torchrun", train_script=script("train.py", SLEEPS))
    two.wait_for(process, two.hosts[1], f"cat {RUNS}/*/logs/rank1.out 2>/dev/null")
    two.on(two.hosts[number], "pkill -KILL -u trainer -f '[p]ython -u train.py'")
    status, said, result = two.ended(process)
    assert status != 0
    assert (result["failure"]["node"], result["failure"]["rank"]) == (two.hosts[number], number), said[-3000:]
    assert "SIGKILL" in result["failure"]["reason"], result["failure"]
    two.is_empty()


@pytest.fixture
def cut(two):
    """Cut the second host off, and let it be reached again."""
    host = two.hosts[1]
    two.on(host, "apt-get install -y -qq nftables >/dev/null")
    yield lambda: two.cut_off(host)
    two.reconnect(host)


def test_a_node_that_is_cut_off_ends_the_run_on_both_sides(two, script, cut):
    process = two.train("torchrun", train_script=script("train.py", SLEEPS))
    two.wait_for(process, two.hosts[1], f"cat {RUNS}/*/logs/rank1.out 2>/dev/null")
    cut()
    began = time.monotonic()
    status, said, result = two.ended(process)
    print(f"the run ended {time.monotonic() - began:.0f} s after {two.hosts[1]} was cut off")
    assert status != 0
    assert result["failure"]["node"] == two.hosts[1], said[-3000:]
    assert "unreachable" in result["failure"]["reason"]
    two.is_empty(60)  # on the host that was cut off, too: its lease ran out


def test_a_port_that_is_taken_is_named(two, script):
    two.on(two.hosts[0], "systemd-run -q --collect --unit=taken python3 -m http.server 29500")
    two.on(two.hosts[0], "until ss -ltn | grep -q :29500; do sleep 0.2; done")
    try:
        status, said, result = two.trained("torchrun", train_script=script("train.py", SLEEPS))
    finally:
        two.on(two.hosts[0], "systemctl stop taken")
    assert status != 0
    assert result["failure"]["node"] == two.hosts[0]
    assert "The rendezvous port 29500 of this node is in use" in said
    two.is_empty()


def test_a_host_without_the_environment(two, script):
    two.on(two.hosts[1], f"mv {ENVIRONMENT} {ENVIRONMENTS}/.away")
    try:
        status, said, result = two.trained("torchrun", train_script=script("train.py", SLEEPS))
    finally:
        two.on(two.hosts[1], f"mv {ENVIRONMENTS}/.away {ENVIRONMENT}")
    assert status != 0
    assert result["failure"]["node"] == two.hosts[1]
    assert f"interpreter {ENVIRONMENT}/bin/python does not exist on this node; run playbook site.yml" in said
    two.is_empty()


@pytest.mark.parametrize("launcher", ["torchrun", "elastic", "mpirun"])
def test_versions_that_differ_between_the_hosts_are_refused(two, script, launcher):
    host = two.hosts[1]
    site_packages = two.on(host, f"echo {ENVIRONMENT}/lib/python3*/site-packages").strip()
    (name,) = two.on(host, f"ls {site_packages} | grep ^fsspec-").split()
    version = name[len("fsspec-") : -len(".dist-info")]
    two.on(host, f"mv {site_packages}/{name} {site_packages}/fsspec-2020.1.0.dist-info")
    try:
        status, said, result = two.trained(launcher, train_script=script("train.py", SLEEPS), train_install_mpi=True)
    finally:
        two.on(host, f"mv {site_packages}/fsspec-2020.1.0.dist-info {site_packages}/{name}")
    assert status != 0
    assert result["failure"]["node"] == host, said[-3000:]
    reason = f"the environment of {host} has fsspec 2020.1.0, not {version} as on {two.hosts[0]}; run playbook site.yml on both"
    assert result["failure"]["reason"] == reason
    nothing_started(two, said)


def test_a_wheel_that_is_corrupted_on_its_way_is_not_installed(two):
    first, second = two.hosts
    before = packages(two, second)
    two.on(second, f"rm -rf {ENVIRONMENT} {ENVIRONMENTS}/.main-*")
    two.on(first, f"systemd-run -q --collect --unit=corrupt sh -c '{CORRUPT}'")
    try:
        run = site(two)
    finally:
        two.on(first, "systemctl stop corrupt")
    said = " ".join(run.output.split())
    assert run.status == 0, run.output[-4000:]
    assert f"Environment main comes from the package index, not from {first}" in said
    assert "does not have the SHA-256 of the lock" in said
    assert packages(two, second) == before
    in_use = two.on(second, f"readlink {ENVIRONMENT}").strip()
    assert set(two.on(second, f"ls -A {ENVIRONMENTS}").split()) == {"main", in_use}


def test_a_disk_that_is_full_while_it_is_unpacked(two):
    second = two.hosts[1]
    two.on(second, f"mount -t tmpfs -o size=2g,mode=0755 allreduce-full {ENVIRONMENTS}")
    two.on(second, f"systemd-run -q --collect --unit=fills sh -c '{FILLS}'")
    try:
        run = site(two)
        left = two.on(second, f"ls -A {ENVIRONMENTS}").split()
    finally:
        two.on(second, f"systemctl stop fills; umount {ENVIRONMENTS}")
    said = " ".join(run.output.split())
    assert run.status != 0
    assert run.recap[second]["failed"] == 1, said[-3000:]
    assert "No space left on device" in said
    assert all(one.startswith(".main-") for one in left), "half an environment is in use"
    again = site(two)
    assert again.status == 0, again.output[-4000:]
    two.on(second, f"{ENVIRONMENT}/bin/python -c 'import torch'")
