# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every launcher left on two hosts with a firewall, what allreduce-run and users' own commands do there, and what an outsider sees."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import users

ROOT = Path(__file__).resolve().parents[3]
ENGINES = {
    "torchrun": "torchrun.log",
    "elastic": "torchrun.log",
    "mpirun": "mpirun.log",
    "horovodrun": "horovodrun.log",
}
# A port of each kind: a rendezvous, what launchers take for themselves, and Open MPI's daemons.
PORTS = (29500, 32768, 50000)
CONNECT = "import socket; socket.create_connection(('{address}', {port}), 3)"


@pytest.fixture(scope="module")
def trainings(reports):
    """The results of the scenario's runs, oldest first."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in (reports / "training").glob("*/result.json")]
    return sorted(found, key=lambda one: one["started"])


def test_every_launcher_trained_on_both_hosts(trainings, names, reports):
    assert len(trainings) == len(ENGINES)
    for launcher, training in zip(ENGINES, trainings, strict=True):
        assert training["status"] == "succeeded", (launcher, training["failure"])
        assert training["nodes"] == names
        assert training["world_size"] == len(names)
        assert training["metrics"]["loss_last"] < training["metrics"]["loss_first"]
        logs = reports / "training" / training["run_id"] / "logs"
        assert (logs / names[0] / ENGINES[launcher]).exists(), launcher
    assert [Path(one["script"]).name for one in trainings] == ["train_ddp.py"] * 3 + ["train_horovod.py"]


def test_the_report_shows_every_run(reports, trainings):
    page = (reports / "report.html").read_text(encoding="utf-8")
    assert [one["run_id"] for one in trainings if one["run_id"] not in page] == []


def test_nothing_is_left_of_the_runs(host):
    assert host.run("pgrep -u trainer -a .").stdout == ""


@pytest.mark.parametrize("command", ["allreduce-run", "torchrun", "horovodrun", "mpirun"])
def test_what_users_type_on_a_host(names, command):
    nodes = users.Nodes(tuple(names), 1)
    assert users.shortcoming(users.train(users.COMMANDS[command], nodes), nodes.total) is None


def test_an_activated_shell_finds_the_environment(host):
    assert users.prefix(host.check_output("hostname")) == users.ENVIRONMENT


def test_the_other_host_gets_in_and_the_outsider_does_not(host, names):
    own, address = host.check_output("hostname"), address_of(host)
    other = next(name for name in names if name != own)
    for port in PORTS:
        host.check_output(
            f"systemd-run -q --collect --unit=listen-{port} python3 -m http.server {port} --bind {address}"
        )
    try:
        for port in PORTS:
            host.check_output(f"until ss -ltn | grep -q '{address}:{port} '; do sleep 0.2; done")
            program = CONNECT.format(address=address, port=port)
            assert on(other, f'python3 -c "{program}"').returncode == 0, f"{other} does not reach port {port} of {own}"
            refused = on("cluster-outsider-1", f'python3 -c "{program}"')
            assert "TimeoutError" in refused.stderr or "refused" in refused.stderr, (
                f"the outsider reaches port {port} of {own}"
            )
    finally:
        host.run("systemctl stop 'listen-*'")


def address_of(host):
    """The cluster address of a host."""
    return host.check_output("hostname -I").split()[0]


def on(name, command):
    """Run a command on a host of the lab as root."""
    argv = [sys.executable, "-m", "tests.lab", "exec", name, "--", "sh", "-c", command]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
