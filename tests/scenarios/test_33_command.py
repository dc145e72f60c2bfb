# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""allreduce-run on two hosts, as the training user types it: what it shows, and what it leaves behind."""

import base64
import json
import time

import pytest
from cluster import CHECKOUT, KEEP
from training_hosts import TrainingHosts

pytestmark = pytest.mark.lab

FAILS = """
import os, sys, time
import torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    print("the data set is not where I expected it", file=sys.stderr)
    sys.exit(3)
time.sleep(600)
"""
SAYS = """
import glob, os, pathlib
import torch.distributed as dist
dist.init_process_group("gloo")
lines = [pathlib.Path(path).read_text(errors="replace") for path in glob.glob("/proc/[0-9]*/cmdline") if os.path.exists(path)]
print(dist.get_rank(), dist.get_world_size(), os.environ["ALLREDUCE_NODE_ADDRESSES"], open("more/word").read(), flush=True)
print(any(os.environ["API_KEY"] in line for line in lines), flush=True)
"""
SLEEPS = "import time\nprint('asleep', flush=True)\ntime.sleep(900)\n"
ENVIRONMENT = "/opt/allreduce/envs/main"


class Typing(TrainingHosts):
    """The hosts, and what the training user types on the first one."""

    def put(self, name, text):
        """Write a file of the user on the first host."""
        coded = base64.b64encode(text.encode()).decode()
        self.typed(f"mkdir -p $(dirname {name}); echo {coded} | base64 -d >{name}")

    def typed(self, command, end="2>&1; echo status $?"):
        """What a command says that the user types on the first host, with its exit status."""
        return self.on(self.hosts[0], f"cd /home/trainer && runuser -u trainer -- sh -c '{command}' {end}")

    def begin(self, command):
        """A command of the user that goes on by itself, with a session of its own."""
        self.typed(f'setsid sh -c "{command}" >said 2>&1 </dev/null & echo')
        self.wait("cat said", "asleep")

    def wait(self, command, word, seconds=90):
        deadline = time.monotonic() + seconds
        while word not in (said := self.typed(command)):
            assert time.monotonic() < deadline, said
            time.sleep(1)


@pytest.fixture(scope="module")
def two():
    """The hosts, those of test_31; ALLREDUCE_KEEP=1 leaves them, and takes them again."""
    made = Typing()
    made.put("train_ddp.py", (CHECKOUT / "examples" / "train_ddp.py").read_text(encoding="utf-8"))
    made.put("sleeps.py", SLEEPS)
    yield made
    if not KEEP:
        made.down()


def test_a_training_on_all_nodes(two):
    said = two.typed("allreduce-run train_ddp.py --epochs 2 --samples 512")
    assert "status 0" in said, said
    assert "2 ranks on cpu with gloo" in said
    assert "epoch 2/2" in said
    run = two.typed("ls allreduce-runs").split()[-3]
    for rank, host in enumerate(two.hosts):
        assert two.on(host, f"ls /home/trainer/allreduce-runs/{run}/logs/rank{rank}.out")
        assert two.on(host, f"stat -c %a /home/trainer/allreduce-runs/{run}").strip() == "700"
    two.is_empty()


def test_files_and_variables_reach_all_nodes_and_no_command_line(two):
    two.put("more/word", "sesame")
    two.put("says.py", SAYS)
    two.put("secret", "export API_KEY=s3cr3t-of-the-user")  # in a shell's command line it would be seen, too
    said = two.typed(". ./secret; allreduce-run --file more -x API_KEY says.py")
    assert "status 0" in said, said
    nodes = json.loads(two.on(two.hosts[0], "cat /etc/allreduce/nodes.json"))
    assert f"0 2 {nodes[0]['address']},{nodes[1]['address']} sesame" in said
    run = two.typed("ls -t allreduce-runs").split()[0]
    for rank, host in enumerate(two.hosts):
        assert two.on(host, f"cat /home/trainer/allreduce-runs/{run}/logs/rank{rank}.out").splitlines()[-1] == "False"


def test_one_node_and_several_ranks(two):
    said = two.typed(f"allreduce-run --nodes {two.hosts[1]} --nproc-per-node 2 train_ddp.py --epochs 1 --samples 512")
    assert "status 0" in said, said
    assert "2 ranks on cpu" in said


def test_a_rank_that_exits_3(two):
    two.put("fails.py", FAILS)
    said = two.typed("allreduce-run fails.py")
    assert "status 1" in said, said
    assert f"rank 1 on {two.hosts[1]} ended with exit code 3" in said
    assert "the data set is not where I expected it" in said
    two.is_empty()


@pytest.mark.parametrize(("signal", "status"), [("INT", "130"), ("TERM", "143"), ("KILL", None)])
def test_a_command_that_is_interrupted_leaves_nothing(two, signal, status):
    two.begin("allreduce-run sleeps.py; echo ended with \\$?")
    two.typed(f"pkill -{signal} -f [r]un/run.py")
    if status:
        two.wait("cat said", f"ended with {status}")
        assert "it was interrupted" in two.typed("cat said")
    two.is_empty()


def test_a_killed_rank(two):
    two.begin("allreduce-run sleeps.py; echo ended with \\$?")
    two.on(two.hosts[1], "pkill -KILL -u trainer -f [p]ython.*sleeps.py")
    two.wait("cat said", "ended with 1")
    assert f"rank 1 on {two.hosts[1]} ended with signal 9" in two.typed("cat said")
    two.is_empty()


def test_a_node_without_the_environment(two):
    two.on(two.hosts[1], f"mv {ENVIRONMENT} {ENVIRONMENT}.away")
    try:
        said = two.typed("allreduce-run sleeps.py")
    finally:
        two.on(two.hosts[1], f"mv {ENVIRONMENT}.away {ENVIRONMENT}")
    assert "status 1" in said, said
    assert f"{two.hosts[1]}: it cannot be reached, or cannot begin" in said
    assert "No such file or directory" in said
    two.is_empty()


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("allreduce-run absent.py", "absent.py does not exist"),
        ("allreduce-run --nodes gpu-9 sleeps.py", "there is no node gpu-9; the cluster has launch-1, launch-2"),
        ("allreduce-run --nodes 3 sleeps.py", "--nodes 3, but the cluster has 2"),
        ("allreduce-run -x NOTHING sleeps.py", "-x NOTHING: your environment has no such variable"),
        ("allreduce-run --nproc-per-node many sleeps.py", "--nproc-per-node is a number or auto, not many"),
        ("ALLREDUCE_ENV=other allreduce-run sleeps.py", "there is no environment other on this node"),
    ],
)
def test_bad_input(two, command, sentence):
    said = two.typed(command)
    assert sentence in said, said
    assert "status 0" not in said


def test_removal(two):
    run = two.play("playbooks/site.yml", "--tags", "cluster_ssh", "-e", "cluster_ssh_state=absent")
    assert run.status == 0, run.output[-3000:]
    for host in two.hosts:
        assert two.on(host, "ls /usr/local/bin/allreduce-run /opt/allreduce/run/*.py", check=False) == ""
    run = two.play("playbooks/site.yml", "--tags", "cluster_ssh")
    assert run.status == 0, run.output[-3000:]
