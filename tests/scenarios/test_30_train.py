# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A converged cluster: verified, trained on one and on two hosts, reported; and what happens when a rank fails."""

import base64
import json
import os
import signal
import time
from pathlib import Path

import pytest
from cluster import CHECKOUT

pytestmark = pytest.mark.lab

# Run a script as one rank; at the end, how many tensors collectives were given, and how many of them Python has dropped.
WATCHED = """
import json, os, runpy, sys, weakref
import torch, torch.distributed as dist

seen = []

def watch(name):
    real = getattr(dist, name)

    def call(*given, **options):
        flat = [one for part in given for one in (part if isinstance(part, list) else [part])]
        seen.extend(weakref.ref(one) for one in flat if isinstance(one, torch.Tensor))
        return real(*given, **options)

    setattr(dist, name, call)

for name in ("all_reduce", "all_gather", "broadcast"):
    watch(name)
destroy = dist.destroy_process_group

def leave():
    print(json.dumps([len(seen), sum(one() is None for one in seen[-LAST:])]))
    destroy()

dist.destroy_process_group = leave
os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29871")
sys.argv = ARGUMENTS
runpy.run_path(sys.argv[0], run_name="__main__")
"""
TRAINERS = "pgrep -u trainer -c . || true"


def results(cluster):
    """All training results, oldest first."""
    found = sorted((cluster.inventory / ".reports" / "training").glob("*/result.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in found]


def newest(cluster):
    """The result of the run that ended last."""
    return max(results(cluster), key=lambda result: result["finished"])


def assert_no_process_left(cluster, seconds):
    """No process of the training user on any host, after at most SECONDS."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if all(cluster.on(host, TRAINERS).strip() == "0" for host in cluster.hosts):
            return
        time.sleep(1)
    raise AssertionError({host: cluster.on(host, "ps -u trainer -o pid,args || true") for host in cluster.hosts})


def test_verify(cluster):
    run = cluster.play("playbooks/verify.yml")
    assert run.status == 0, run.output[-6000:]
    verdict = json.loads((cluster.inventory / ".reports" / "verify.json").read_text(encoding="utf-8"))
    assert set(verdict["nodes"]) == set(cluster.hosts)
    statuses = [check["status"] for node in verdict["nodes"].values() for check in node["checks"]]
    assert "passed" in statuses
    assert "failed" not in statuses
    assert any(c["category"] == "collectives" and c["status"] == "passed" for c in verdict["cluster_checks"])


def test_verify_sees_a_missing_package(cluster):
    host = cluster.hosts[0]
    cluster.on(host, "dpkg --remove --force-depends nvidia-smi")
    try:
        run = cluster.play("playbooks/verify.yml")
        assert run.status != 0
        assert "nvidia-smi" in run.words
        assert host in run.words
    finally:
        site = cluster.play("playbooks/site.yml")
        assert site.status == 0, site.output[-6000:]
    # Installed, whether it is held or not.
    assert cluster.on(host, "dpkg-query --show --showformat '${db:Status-Status}' nvidia-smi") == "installed"


@pytest.mark.parametrize("nodes", [1, 2])
def test_training(cluster, nodes):
    run = cluster.play("playbooks/train.yml", "-e", f"train_nodes={nodes}")
    assert run.status == 0, run.output[-6000:]
    result = newest(cluster)
    assert result["status"] == "succeeded"
    assert result["nodes"] == cluster.hosts[:nodes]
    assert result["world_size"] == nodes
    assert result["metrics"]["loss_last"] < result["metrics"]["loss_first"]
    assert result["metrics"]["backend"] == "gloo"
    logs = cluster.inventory / ".reports" / "training" / result["run_id"] / "logs"
    assert {path.name for path in logs.iterdir()} == set(cluster.hosts[:nodes])
    assert_no_process_left(cluster, 10)


@pytest.mark.parametrize(
    ("script", "arguments", "last"),
    [
        ("roles/verify/files/allreduce_check.py", ["--device", "cpu"], 0),
        ("examples/train_ddp.py", ["--epochs", "1"], 3),
    ],
    ids=["check", "train"],
)
def test_no_tensor_is_left_to_gloos_threads(cluster, script, arguments, last):
    host = cluster.hosts[0]
    there = f"/root/{Path(script).name}"
    program = WATCHED.replace("ARGUMENTS", repr([there, *arguments])).replace("LAST", str(last))
    text = (CHECKOUT / script).read_text(encoding="utf-8")
    for path, content in ((there, text), ("/root/watched.py", program)):
        cluster.on(host, f"base64 -d > {path} <<'END'\n{base64.b64encode(content.encode()).decode()}\nEND")
    said = cluster.on(host, "/opt/allreduce/envs/main/bin/python /root/watched.py").splitlines()[-1]
    seen, dropped = json.loads(said)
    assert seen > 3
    assert dropped == 0


def test_a_rank_that_exits_3(cluster, tmp_path):
    script = tmp_path / "exits_three.py"
    script.write_text(
        "import os, sys, time\n"
        "import torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "if dist.get_rank() == 1:\n"
        "    print('the data set is not where I expected it', file=sys.stderr)\n"
        "    sys.exit(3)\n"
        "time.sleep(600)\n",
        encoding="utf-8",
    )
    began = time.monotonic()
    run = cluster.play("playbooks/train.yml", "-e", f"train_script={script}")
    assert run.status != 0
    assert time.monotonic() - began < 120, "the other host was not stopped"
    assert "the data set is not where I expected it" in run.words
    failure = newest(cluster)["failure"]
    assert (failure["node"], failure["rank"], failure["exit_code"]) == (cluster.hosts[1], 1, 3)
    assert_no_process_left(cluster, 10)


@pytest.mark.parametrize(("how", "seconds"), [(signal.SIGINT, 20), (signal.SIGKILL, 90)], ids=["ctrl-c", "kill"])
def test_interrupted_training_leaves_no_process(cluster, tmp_path, how, seconds):
    script = tmp_path / "sleeps.py"
    script.write_text("import time\nprint('asleep', flush=True)\ntime.sleep(900)\n", encoding="utf-8")
    process = cluster.start("playbooks/train.yml", "-e", f"train_script={script}")
    try:
        deadline = time.monotonic() + 120
        while any(cluster.on(host, TRAINERS).strip() == "0" for host in cluster.hosts):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline, "training did not start"
            time.sleep(1)
    finally:
        os.killpg(process.pid, how)
        process.communicate(timeout=60)
    assert_no_process_left(cluster, seconds)


def test_report(cluster):
    run = cluster.play("playbooks/report.yml")
    assert run.status == 0, run.output
    reports = cluster.inventory / ".reports"
    report = json.loads((reports / "report.json").read_text(encoding="utf-8"))
    assert report
    page = (reports / "report.html").read_text(encoding="utf-8")
    assert all(host in page for host in cluster.hosts)
    assert (reports / "junit.xml").exists()
    again = cluster.play("playbooks/report.yml")
    assert again.status == 0, again.output
    assert all(counts["changed"] == 0 for counts in again.recap.values())
