# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mpirun's agent, relay and ranks on one machine, with an mpirun and an ssh of a few lines; the real ones run in the lab."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.request import NODE_FILES

# Starts a "daemon" on the second host through the remote shell it is given, ranks of its own here, and fails with them.
MPIRUN = """#!{python}
import os, shlex, subprocess, sys
args = sys.argv[1:]
hosts = [line.split()[0] for line in open(args[args.index("--hostfile") + 1])]
size = int(args[args.index("-np") + 1])
command = args[args.index("--end") + 1:]
def words(rank):
    names = {{"RANK": rank, "SIZE": size, "LOCAL_RANK": 0, "LOCAL_SIZE": 1}}
    return {{"OMPI_COMM_WORLD_" + name: str(value) for name, value in names.items()}}
text = " ".join(f"{{name}}={{value}}" for name, value in words(1).items())
daemon = f"({{text}} setsid {{shlex.join(command)}} >/dev/null 2>&1 &)".replace("/node-1/", "/node-2/" if {begins!r} else "/none/")
shell = subprocess.Popen([*os.environ["OMPI_MCA_plm_rsh_agent"].split(), "-x", hosts[1], daemon]) if len(hosts) > 1 else None
code = subprocess.run(command, env={{**os.environ, **words(0)}}).returncode
print("daemon", shell and shell.wait())
sys.exit(code)
"""
# Takes the other node's directory for this one's.
SSH = """#!/bin/sh
while [ "$#" -gt 1 ]; do shift; done
exec sh -c "$(echo "$1" | sed 's,/node-1/,/node-2/,')"
"""


@pytest.fixture
def nodes(tmp_path):
    """Directories of one run on two nodes; start(node, script) runs the agent there."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("mpirun", ""), ("ssh", SSH)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def start(name, script, count=2, begins=True, cpus=()):
        run = tmp_path / name / "run"
        for folder in ("logs", "work"):
            (run / folder).mkdir(parents=True)
        mpirun = MPIRUN.format(python=sys.executable, begins=begins)
        (programs / "mpirun").write_text(mpirun)
        for file in ("agent.py", "rank.py", "mpi.py", "commands.py", "relay.py"):
            (run / file).write_text((NODE_FILES / file).read_text())
        (run / "work" / "train.py").write_text(script)
        launch = {
            "engine": "mpirun", "arguments": ["--end"], "python": sys.executable, "script": "train.py", "args": ["a b"],
            "variables": {"MASTER_ADDR": name}, "run_id": "r1", "nproc_per_node": "1", "min_nodes": count,
            "cpus": cpus, "is_first": name == "node-1", "addresses": ["10.0.0.1", "10.0.0.2"][:count],
            "programs": ["/nowhere/mpirun", str(programs / "mpirun")],
        }  # fmt: skip
        # The arguments come before the command, which the test's mpirun must tell from them.
        (run / "launch.json").write_text(json.dumps(launch))
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        return subprocess.Popen([sys.executable, str(run / "agent.py")], env=environment, cwd=run / "work")

    return start


def outcome(tmp_path, name):
    return json.loads((tmp_path / name / "run" / "logs" / "agent.json").read_text())


SAYS = "import os, sys; print(os.environ['RANK'], os.environ['WORLD_SIZE'], os.environ['MASTER_ADDR'], sys.argv)"


def test_ranks_of_both_nodes_run_in_their_own_agents(nodes, tmp_path):
    two, one = nodes("node-2", SAYS), nodes("node-1", SAYS)
    assert (one.wait(60), two.wait(60)) == (0, 0)
    for number, name in enumerate(("node-1", "node-2")):
        logs = tmp_path / name / "run" / "logs"
        assert (logs / f"rank{number}.out").read_text() == f"{number} 2 {name} ['train.py', 'a b']\n"
        assert json.loads((logs / f"rank{number}.json").read_text())["world_size"] == 2
        assert (outcome(tmp_path, name)["failures"], outcome(tmp_path, name)["error"]) == ([], None)


@pytest.mark.parametrize(
    ("cpus", "bound"), [(["{},4000-4001"], True), (["{}", "{}"], False), ([None], False), (["4000"], False)]
)
def test_a_rank_keeps_to_the_cpus_of_its_gpu(nodes, tmp_path, cpus, bound):
    mine = sorted(os.sched_getaffinity(0))
    cpus = [one and one.format(mine[0]) for one in cpus]
    says = "import os; print(sorted(os.sched_getaffinity(0)))"
    assert nodes("node-1", says, 1, cpus=cpus).wait(60) == 0
    seen = (tmp_path / "node-1" / "run" / "logs" / "rank0.out").read_text()
    assert seen == f"{mine[:1] if bound else mine}\n"


def test_a_node_on_which_no_rank_began_has_failed(nodes, tmp_path):
    two, one = nodes("node-2", SAYS), nodes("node-1", SAYS, begins=False)
    assert (one.wait(60), two.wait(60)) == (0, 1)
    assert outcome(tmp_path, "node-2")["error"] == "no rank on this node"


def test_a_rank_whose_end_nobody_noted_has_failed(nodes, tmp_path):
    kills = "import os, signal; os.environ['RANK'] == '1' and os.kill(os.getppid(), signal.SIGKILL)"
    two, one = nodes("node-2", kills), nodes("node-1", kills)
    assert (one.wait(60), two.wait(60)) == (0, 1)
    assert outcome(tmp_path, "node-2")["error"] == "some ranks left no record of how they ended"


@pytest.mark.parametrize(
    ("script", "exit_code"), [("import sys; sys.exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL)]
)
def test_how_a_rank_ended_is_known(nodes, tmp_path, script, exit_code):
    assert nodes("node-1", script, 1).wait(60) == 1
    (failure,) = outcome(tmp_path, "node-1")["failures"]
    assert (failure["rank"], failure["local_rank"], failure["exit_code"]) == (0, 0, exit_code)
    assert outcome(tmp_path, "node-1")["error"] is None


def listens(tmp_path):
    """Wait until the second node's agent does; return the directory of its socket."""
    logs = tmp_path / "node-2" / "run" / "logs"
    until = time.monotonic() + 30
    while not (logs / "daemon.socket").exists() and time.monotonic() < until:
        time.sleep(0.05)
    return logs


def test_an_agent_that_is_stopped_says_so_and_notes_its_ranks(nodes, tmp_path):
    process = nodes("node-2", SAYS)
    listens(tmp_path)
    process.terminate()
    assert process.wait(30) == 1
    assert outcome(tmp_path, "node-2")["error"] == "signal 15"


def test_a_connection_that_is_gone_hides_no_outcome(nodes, tmp_path, monkeypatch):
    """mpirun has been killed, and its remote shell with it."""
    process = nodes("node-2", SAYS)
    monkeypatch.chdir(listens(tmp_path))  # the whole path is too long for a socket
    with socket.socket(socket.AF_UNIX) as shell:
        while shell.connect_ex("daemon.socket"):  # it is bound, and listens at once
            time.sleep(0.05)
        shell.sendall(b"sleep 1")
    assert process.wait(30) == 1
    assert outcome(tmp_path, "node-2")["error"] == "no rank on this node"


def test_a_node_with_no_agent_is_given_up(tmp_path):
    (tmp_path / "logs").mkdir()
    text = (NODE_FILES / "relay.py").read_text()
    assert "PATIENCE = 120.0" in text
    Path(tmp_path / "relay.py").write_text(text.replace("PATIENCE = 120.0", "PATIENCE = 0.2"))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "relay.py")], input="true", capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "The agent of this run does not listen on this node after 0 s.\n"
