# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Launchers other than torchrun on two hosts: what they run, and what they survive. A killed host is a killed container."""

import json
import time

import pytest
from training_hosts import RUNS

pytestmark = pytest.mark.lab

# Long enough to be killed in the middle, short enough to be finished by one host alone.
TRAINING = "--epochs 40 --samples 2048 --batch-size 32 --width 4 --checkpoint-dir checkpoints --checkpoint-every 10 --resume --timeout 60"
# Open MPI's own communication, between ranks that find each other as torch.distributed does.
REDUCES = """
import ctypes, os
import torch.distributed as dist

dist.init_process_group("gloo")
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
names = ("double", "op_sum", "comm_world")
double, add, world = (ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_" + name)) for name in names)
mine, total = (ctypes.c_double * 100000)(*[dist.get_rank() + 1.0] * 100000), (ctypes.c_double * 100000)()
assert mpi.MPI_Allreduce(mine, total, 100000, double, add, world) == 0
assert set(total) == {3.0}, set(total)
print(open("/proc/self/cgroup").read(), os.environ["LOCAL_RANK"], os.environ["MASTER_ADDR"], flush=True)
mpi.MPI_Finalize()
dist.destroy_process_group()
"""
FAILS = """
import os, sys, time
import torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    print("the data set is not where I expected it", file=sys.stderr)
    sys.exit(3)
time.sleep(600)
"""
# Hosts of the lab have the kernel's clock; faketime (Debian's) sets another for what a host's systemd starts, and for the
# Python that Ansible runs there.
LATE_PYTHON = "/usr/local/bin/python-of-the-lab"
LATE = f"""
apt-get -y -q install faketime >/dev/null
mkdir -p /etc/systemd/system.conf.d
printf '[Manager]\\nDefaultEnvironment=LD_PRELOAD=%s FAKETIME=%s FAKETIME_DONT_FAKE_MONOTONIC=1\\n' \\
  "$(ls /usr/lib/*/faketime/libfaketime.so.1)" {{offset}} >/etc/systemd/system.conf.d/late.conf
systemctl daemon-reexec
printf '#!/bin/sh\\nexec faketime -f {{offset}} python3 "$@"\\n' >{LATE_PYTHON}
chmod 755 {LATE_PYTHON}
"""
ON_TIME = "rm -f /etc/systemd/system.conf.d/late.conf; systemctl daemon-reexec"
SLEEPS = "import time\nprint('asleep', flush=True)\ntime.sleep(900)\n"
RANK_OF = "pgrep -u trainer -f '[p]ython -u {}'"


@pytest.fixture
def mpi(two):
    """Open MPI on both hosts, as a run that was asked for it leaves them."""
    if two.on(two.hosts[0], "ls /usr/bin/mpirun 2>/dev/null", check=False) == "":
        status, said, _result = two.trained("mpirun", train_install_mpi=True, train_args="--epochs 1")
        assert status == 0, said[-6000:]
    return two


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"train_launcher": "elastic", "train_nodes": 1}, "but the run has 1 node; set train_nodes to two or more"),
        ({"train_launcher": "elastic", "train_min_nodes": 3}, "train_min_nodes is 3, but the run has 2 nodes"),
        (
            {"train_min_nodes": 1},
            "train_min_nodes is 1, but train_launcher torchrun needs all nodes; set train_launcher to elastic",
        ),
        ({"train_launcher": "srun"}, "srun"),
    ],
)
def test_bad_input(two, variables, sentence):
    run = two.play("playbooks/train.yml", "-e", json.dumps(variables))
    assert run.status != 0
    assert sentence in run.words
    assert all(counts["changed"] == 0 for counts in run.recap.values()), run.output


def test_mpirun_is_missing(two):
    for host in two.hosts:
        two.on(host, "apt-get -y -q purge openmpi-bin >/dev/null 2>&1 || true")
    status, said, _result = two.trained("mpirun", "--check")
    assert (status, "This node has no mpirun; set train_install_mpi to true" in said) == (0, True), said[-3000:]
    status, said, result = two.trained("mpirun")
    assert status != 0
    assert result["failure"]["reason"].startswith(
        "This node has no mpirun; set train_install_mpi to true, or install Open MPI"
    )
    two.is_empty()


def test_mpirun_trains_on_both(mpi):
    status, said, result = mpi.trained("mpirun", train_args="--epochs 2")
    assert status == 0, said[-6000:]
    assert (result["status"], result["world_size"], result["nodes"]) == ("succeeded", 2, mpi.hosts)
    assert result["metrics"]["loss_last"] < result["metrics"]["loss_first"]
    assert result["metrics"]["backend"] == "gloo"
    assert set(mpi.logs(result, "mpirun.log")) == set(mpi.hosts)
    assert set(mpi.logs(result, "rank1.out")) == {mpi.hosts[1]}
    mpi.is_empty()


def test_ranks_of_mpirun_reduce_with_mpi_in_the_units_of_their_nodes(mpi, script):
    status, said, result = mpi.trained("mpirun", train_script=script("reduces.py", REDUCES))
    assert status == 0, said[-6000:]
    for rank, host in enumerate(mpi.hosts):
        (text,) = mpi.logs(result, f"rank{rank}.out").values()
        address = mpi.on(mpi.hosts[0], "hostname -I").split()[0]
        assert text.split()[-2:] == ["0", address]
        assert f"allreduce-train-{result['run_id']}.service" in text, (host, text)


def test_a_rank_of_mpirun_that_exits_3(mpi, script):
    status, said, result = mpi.trained("mpirun", train_script=script("fails.py", FAILS))
    assert status != 0
    assert "the data set is not where I expected it" in said
    failure = result["failure"]
    assert (failure["node"], failure["rank"], failure["exit_code"]) == (mpi.hosts[1], 1, 3)
    mpi.is_empty()


@pytest.mark.parametrize("number", [0, 1])
def test_a_killed_rank_of_mpirun(mpi, script, number):
    process = mpi.train("mpirun", train_script=script("sleeps.py", SLEEPS))
    for host in mpi.hosts:
        mpi.wait_for(process, host, RANK_OF.format("sleeps.py"))
    mpi.on(mpi.hosts[number], "pkill -KILL -u trainer -f '[p]ython -u sleeps.py'")
    status, _said, result = mpi.ended(process)
    assert status != 0
    failure = result["failure"]
    assert (failure["node"], failure["rank"], failure["exit_code"]) == (mpi.hosts[number], number, -9)
    mpi.is_empty()


@pytest.fixture
def late(two):
    """The second host, its clock 20 s behind, for Ansible's Python too."""
    host = two.hosts[1]
    settings = two.inventory / "host_vars" / f"{host}.yml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(f"ansible_python_interpreter: {LATE_PYTHON}\n", encoding="utf-8")
    two.on(host, LATE.format(offset="-20s"))
    yield host
    settings.unlink()
    two.on(host, ON_TIME)


def test_a_host_whose_clock_is_late_is_named_and_nothing_starts(two, late, script):
    status, said, result = two.trained("torchrun", train_script=script("waits.py", SLEEPS))
    assert status != 0
    assert result["script"] == "waits.py", said[-3000:]
    failure = result["failure"]
    assert failure["node"] == late, result
    assert f"s behind that of {two.hosts[0]}, and c10d would leave the node out" in failure["reason"]
    assert two.on(late, f"ls {RUNS}", check=False) == ""
    assert not any(two.logs(result, "rank0.out").values())
    two.is_empty()


def test_elastic_survives_a_killed_worker(two):
    process = two.train("elastic", train_min_nodes=1, train_args=TRAINING)
    two.half_way(process)
    two.on(two.hosts[1], "pkill -KILL -u trainer -f '[p]ython -u train_ddp.py'")
    status, said, result = two.ended(process)
    assert status == 0, said[-6000:]
    assert (result["status"], result["world_size"], "lost" in result) == ("succeeded", 2, False)
    assert result["metrics"]["resumed_from"], result["metrics"]
    two.is_empty()


@pytest.mark.parametrize("number", [1, 0], ids=["another", "rendezvous"])
def test_elastic_survives_a_killed_host(two, number):
    process = two.train("elastic", train_min_nodes=1, train_args=TRAINING)
    try:
        two.half_way(process)
        killed = time.monotonic()
        two.kill(two.hosts[number])
        status, said, result = two.ended(process)
    finally:
        two.resize(2)
    print(f"ended {time.monotonic() - killed:.0f} s after {two.hosts[number]} was killed")
    assert status == 0, said[-6000:]
    assert (result["status"], result["world_size"]) == ("succeeded", 1), result
    assert [one["node"] for one in result["lost"]] == [two.hosts[number]]
    assert result["metrics"]["resumed_from"], result["metrics"]
    assert f"{two.hosts[number]} was lost during run {result['run_id']}" in said
    two.is_empty(60)


def test_elastic_fails_with_fewer_hosts_than_it_needs(two):
    process = two.train("elastic", train_args=TRAINING)
    try:
        two.half_way(process)
        two.kill(two.hosts[1])
        status, said, result = two.ended(process)
    finally:
        two.resize(2)
    assert status != 0
    assert (result["status"], result["failure"]["node"]) == ("failed", two.hosts[1]), said[-3000:]
    two.is_empty(60)
