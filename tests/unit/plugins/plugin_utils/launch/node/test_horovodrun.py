# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""horovodrun's agent, relay and ranks on one machine, with a horovodrun and an ssh of a few lines; the real ones run in the lab."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.request import NODE_FILES

# Tries each other host, then starts all ranks at once, as Horovod 0.28 does, and fails with the first of them.
LAUNCH = """
import os, shlex, subprocess, sys
from horovod.runner.util import remote

def run_commandline():
    args = sys.argv[1:]
    hosts = [part.split(":") for part in args[args.index("-H") + 1].split(",")]
    size, command = int(args[args.index("-np") + 1]), args[args.index("--end") + 1:]
    assert size == sum(int(slots) for _host, slots in hosts)
    for host, _slots in hosts[1:]:
        subprocess.run(f"{remote.SSH_COMMAND_PREFIX} {host}   -o ConnectTimeout=10 true", shell=True, check=True)
    started, rank = [], 0
    for host, slots in hosts:
        for local in range(int(slots)):
            names = {"RANK": rank, "SIZE": size, "LOCAL_RANK": local, "LOCAL_SIZE": slots, "GLOO_IFACE": "of-the-first"}
            words = " ".join(f"HOROVOD_{name}={value}" for name, value in names.items())
            text = f"env {words} SECRET={os.environ.get('SECRET', 'unset')} {shlex.join(command)}"
            if host != hosts[0][0]:
                there = f"cd {os.getcwd()} > /dev/null 2>&1 ; {text}".replace("/one/", "/two/")
                text = f"{remote.SSH_COMMAND_PREFIX} {host}    {shlex.quote(there)}"
            started.append(subprocess.Popen(text, shell=True))
            rank += 1
    codes = [child.wait() for child in started]
    sys.exit(max(codes))
"""
# Takes the other node's directory for this one's.
SSH = """#!/bin/sh
while [ "$#" -gt 1 ]; do shift; done
exec sh -c "$(echo "$1" | sed 's,/one/,/two/,')"
"""
SAYS = """
import os, sys
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "HOROVOD_GLOO_IFACE", "SECRET")
print(*(os.environ[name] for name in names), sys.argv)
"""


@pytest.fixture
def nodes(tmp_path):
    """Directories of one run on two nodes; start(node, script) runs the agent there."""
    programs = tmp_path / "bin"
    util = tmp_path / "modules" / "horovod" / "runner" / "util"
    for folder in (programs, util):
        folder.mkdir(parents=True)
    (programs / "ssh").write_text(SSH)
    (programs / "ssh").chmod(0o755)
    (util.parent / "launch.py").write_text(LAUNCH)
    (util / "remote.py").write_text("SSH_COMMAND_PREFIX = 'ssh -o StrictHostKeyChecking=no'\n")

    def start(name, script, count=2, nproc="1"):
        run = tmp_path / name / "run"
        for folder in ("logs", "work"):
            (run / folder).mkdir(parents=True)
        for file in ("agent.py", "rank.py", "horovodrun.py", "commands.py", "relay.py"):
            text = (NODE_FILES / file).read_text()
            # Only what goes from the unit through systemd is inherited: the place of the module is the test's.
            (run / file).write_text(text.replace("INHERITED = (", 'INHERITED = ("PYTHONPATH", '))
        (run / "work" / "train.py").write_text(script)
        launch = {
            "engine": "horovodrun", "arguments": ["--end"], "python": sys.executable, "script": "train.py", "args": ["a b"],
            "variables": {"GLOO_SOCKET_IFNAME": f"eth-{name}", "SECRET": "hidden"}, "run_id": "r1", "nproc_per_node": nproc,
            "min_nodes": count, "cpus": [], "is_first": name == "one", "addresses": ["10.0.0.1", "10.0.0.2"][:count],
        }  # fmt: skip
        (run / "launch.json").write_text(json.dumps(launch))
        environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(tmp_path / "modules"),
        }
        return subprocess.Popen([sys.executable, str(run / "agent.py")], env=environment, cwd=run / "work")

    return start


def outcome(tmp_path, name):
    found = json.loads((tmp_path / name / "run" / "logs" / "agent.json").read_text())
    return found["failures"], found["error"]


def test_ranks_of_both_nodes_run_in_their_own_agents(nodes, tmp_path):
    two, one = nodes("two", SAYS, nproc="2"), nodes("one", SAYS, nproc="2")
    assert (one.wait(60), two.wait(60)) == (0, 0)
    for number, name in enumerate(("one", "one", "two", "two")):
        logs = tmp_path / name / "run" / "logs"
        assert (
            logs / f"rank{number}.out"
        ).read_text() == f"{number} 4 {number % 2} 2 eth-{name} hidden ['train.py', 'a b']\n"
        assert json.loads((logs / f"rank{number}.json").read_text())["world_size"] == 4
        assert outcome(tmp_path, name) == ([], None)


def test_no_command_line_has_a_variable_of_the_run(nodes, tmp_path):
    shows = "import os; print(open(f'/proc/{os.getppid()}/environ').read().split(chr(0)))"
    assert nodes("one", shows, 1).wait(60) == 0
    # What horovodrun was started with, and hence put into the command line of the rank.
    assert "SECRET=unset" in (tmp_path / "one" / "run" / "logs" / "rank0.out").read_text()


@pytest.mark.parametrize(
    ("ends", "exit_code"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", -signal.SIGKILL)], ids=["exit", "signal"]
)
@pytest.mark.parametrize("rank", [0, 1])
def test_how_a_rank_ended_is_known(nodes, tmp_path, rank, ends, exit_code):
    script = f"import os, sys; os.environ['RANK'] == '{rank}' and {ends}"
    two, one = nodes("two", script), nodes("one", script)
    assert [one.wait(60), two.wait(60)] == [1, rank]
    ((failure,), error) = outcome(tmp_path, ("one", "two")[rank])
    assert (failure["rank"], failure["local_rank"], failure["exit_code"], error) == (rank, 0, exit_code, None)


def test_an_agent_that_is_stopped_says_so(nodes, tmp_path):
    process = nodes("two", SAYS)
    socket = tmp_path / "two" / "run" / "logs" / "daemon.socket"
    until = time.monotonic() + 30
    while not socket.exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.terminate()
    assert process.wait(30) == 1
    assert outcome(tmp_path, "two") == ([], "signal 15")


def test_whoever_ends_the_relay_ends_ssh_with_it(tmp_path):
    (tmp_path / "ssh").write_text("#!/bin/sh\necho begun\nexec sleep 60\n")
    (tmp_path / "ssh").chmod(0o755)
    argv = [sys.executable, str(NODE_FILES / "relay.py"), "-o", "Some=thing", "10.0.0.2", "-p", "22", "true"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        # An ssh that is left would keep this open.
        assert process.communicate(timeout=20)[0] == ""


def test_a_horovod_that_starts_its_ranks_otherwise_is_refused(nodes, tmp_path):
    (tmp_path / "modules" / "horovod" / "runner" / "util" / "remote.py").write_text("PREFIX = 'ssh'\n")
    assert nodes("one", SAYS, 1).wait(60) == 1
    assert outcome(tmp_path, "one") == ([], "exit code 1")
    log = (tmp_path / "one" / "run" / "logs" / "horovodrun.log").read_text()
    assert log == "This version of Horovod does not start ranks by ssh as 0.28 does.\n"
