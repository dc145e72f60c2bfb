# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every launcher left on two hosts with a firewall, what allreduce-run and users' own commands do there, and what an outsider sees."""

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ENGINES = {
    "torchrun": "torchrun.log",
    "elastic": "torchrun.log",
    "mpirun": "mpirun.log",
    "horovodrun": "horovodrun.log",
}
ENVIRONMENT = "/opt/allreduce/envs/main"
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


COMMANDS = {
    "allreduce-run": "allreduce-run train_ddp.py --epochs 2",
    "horovodrun": (
        f"{ENVIRONMENT}/bin/horovodrun -np 2 -H {{nodes}} {ENVIRONMENT}/bin/python /home/trainer/train_horovod.py --epochs 2"
    ),
    "mpirun": (
        "mpirun -np 2 -H {nodes} --bind-to none --map-by slot -x NCCL_DEBUG=INFO -x MASTER_ADDR={address} -x MASTER_PORT=29500"
        f" {ENVIRONMENT}/bin/python /home/trainer/train_ddp.py --epochs 2"
    ),
}


@pytest.fixture
def examples(names):
    """The examples in the home of the training user, on every host."""
    for name in names:
        for script in ("train_ddp.py", "train_horovod.py"):
            coded = base64.b64encode((ROOT / "examples" / script).read_bytes()).decode()
            on(name, f"echo {coded} | base64 -d | install -o trainer -m 0644 /dev/stdin /home/trainer/{script}")


@pytest.mark.parametrize("command", COMMANDS)
def test_what_users_type_on_a_host(host, names, examples, command):
    if host.check_output("hostname") != names[0]:
        return
    nodes = ",".join(f"{name}:1" for name in names)
    line = COMMANDS[command].format(nodes=nodes, address=address_of(host))
    done = host.run(f"cd /home/trainer && timeout 300 sudo -H -u trainer sh -c '{line}'")
    assert done.rc == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "epoch 2/2" in done.stdout


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
