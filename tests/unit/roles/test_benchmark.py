# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook benchmark on this machine: which nodes run what together, what is kept, and the program as it is on one node."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.benchmark import document, training
from tests.support.command import CHECKOUT, play, write_inventory
from tests.support.torch_python import torch_python

# Takes the place of action torchrun, which needs systemd: notes how it was called and returns what the test wants.
DOUBLE = """
import json, os
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        with open(os.environ["CALLS"], "a") as out:
            out.write(json.dumps([task_vars["inventory_hostname"], self._task.args]) + "\\n")
        with open(os.environ["ANSWERS"]) as answers:
            return json.load(answers)[self._task.args["run_id"].partition("-")[2]]
"""


def succeeded(found):
    return {"changed": True, "training": {"status": "succeeded", "world_size": found["world_size"], "metrics": found}}


def collections(place):
    """Return a collections path in which action torchrun is the double and everything else the checkout."""
    root = place / "collections" / "ansible_collections" / "allreduce" / "gpu"
    for folder, own in ((Path(), "plugins"), (Path("plugins"), "action"), (Path("plugins/action"), "torchrun.py")):
        (root / folder).mkdir(parents=True)
        for entry in (CHECKOUT / folder).iterdir():
            if entry.name != own and entry.name not in (".collections", ".git"):
                (root / folder / entry.name).symlink_to(entry)
    (root / "plugins" / "action" / "torchrun.py").write_text(DOUBLE, encoding="utf-8")
    return place / "collections"


def nodes(*names, **variables):
    own = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **variables}
    return {
        "gpu_nodes": {
            "hosts": {name: {"gpu_cluster_address": f"10.0.0.{place}"} for place, name in enumerate(names, 1)},
            "vars": own,
        }
    }


def benchmarked(place, names, answers, *options):
    """Run the playbook on nodes of these names; returns the run, the calls of torchrun, and benchmark.json."""
    write_inventory(place, nodes(*names))
    (place / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
    more = {
        "CALLS": str(place / "calls"),
        "ANSWERS": str(place / "answers.json"),
        "ANSIBLE_BECOME_EXE": "/usr/bin/env",
        "ANSIBLE_BECOME_FLAGS": "",
    }
    run = play(place, "benchmark", *options, collections=collections(place), **more)
    calls = [json.loads(line) for line in (place / "calls").read_text("utf-8").splitlines()]
    written = sorted((place / "inventory" / ".reports" / "benchmarks").glob("*/benchmark.json"))
    return run, calls, json.loads(written[-1].read_text("utf-8")) if written else None


def answers(names, gpus=2):
    """Return what each run of so many nodes leaves."""
    found = {f"node-{name}": succeeded(document(name, [training(gpus * 400.0, gpus)], gpus=gpus)) for name in names}
    found["gpu-1n"] = succeeded(document(names[0], [training(450.0, 1)], gpus=1))
    together = succeeded(document("n", [training(1500.0, gpus * len(names))], gpus=gpus, nodes=len(names)))
    return {**found, f"nodes-{len(names)}n": together}


def test_every_node_runs_alone_then_one_gpu_then_all_nodes(tmp_path):
    names = ("gpu-1", "gpu-2")
    run, calls, found = benchmarked(tmp_path, names, answers(names), "-e", '{"benchmark_args": ["--repeats", "9"]}')
    assert run.status == 0, run.output
    made = [(node, args["run_id"].partition("-")[2], args["nodes"], args["nproc_per_node"]) for node, args in calls]
    assert sorted(made[:2]) == [("gpu-1", "node-gpu-1", ["gpu-1"], "auto"), ("gpu-2", "node-gpu-2", ["gpu-2"], "auto")]
    assert made[2] == ("gpu-1", "gpu-1n", ["gpu-1"], "1")
    assert sorted(made[3:]) == [(node, "nodes-2n", ["gpu-1", "gpu-2"], "auto") for node in names]
    assert [args["args"] for _node, args in calls][2:] == [
        ["--repeats", "9", "--at-most", "training"], *2 * [["--repeats", "9", "--at-most", "collectives", "training"]],
    ]  # fmt: skip
    assert {args["variables"]["ALLREDUCE_NODE"] == node for node, args in calls} == {True}
    assert sorted((one["name"], one["nodes"], one["status"]) for one in found["runs"]) == [
        ("gpu", ["gpu-1"], "succeeded"), ("node", ["gpu-1"], "succeeded"), ("node", ["gpu-2"], "succeeded"),
        ("nodes", ["gpu-1", "gpu-2"], "succeeded"),
    ]  # fmt: skip
    assert "ResNet-50 tuned, images/s: 1 rank 450, 2 ranks 800, 4 ranks 1,500; scaling efficiency 83%" in run.words
    assert "changed=0" in run.words


def test_a_node_with_one_rank_does_not_run_on_one_gpu_again(tmp_path):
    run, calls, found = benchmarked(tmp_path, ["gpu-1"], answers(["gpu-1"], gpus=1))
    assert run.status == 0, run.output
    assert [args["run_id"].partition("-")[2] for _node, args in calls] == ["node-gpu-1"]
    assert [one["name"] for one in found["runs"]] == ["node"]


def test_a_run_that_failed_ends_the_play_at_its_end_and_the_others_are_kept(tmp_path):
    names = ("gpu-1", "gpu-2")
    given = {
        **answers(names),
        "nodes-2n": {"failed": True, "msg": "Training failed on gpu-2: rank 3 exited with code 1\n  tail"},
    }
    run, _calls, found = benchmarked(tmp_path, names, given)
    assert run.status != 0
    assert (
        "Runs of the benchmark failed on gpu-1 and gpu-2: Training failed on gpu-2: rank 3 exited with code 1."
        in run.words
    )
    assert [one["status"] for one in found["runs"]].count("succeeded") == 3


def alone(place, prefix, *options):
    """Run the playbook as the user of the connection, without systemd."""
    write_inventory(place, nodes("here", benchmark_env=str(prefix), benchmark_supervised=False))
    run = play(place, "benchmark", *options)
    written = sorted((place / "inventory" / ".reports" / "benchmarks").glob("*/benchmark.json"))
    return run, json.loads(written[-1].read_text("utf-8")) if written else None


def test_a_machine_without_systemd_runs_the_program_as_it_is(tmp_path):
    prefix = Path(torch_python()).parent.parent
    quick = ["--device", "cpu", "--seconds", "0.01", "--repeats", "1", "--gemm-size", "64", "--only", "gemm", "memory"]
    run, found = alone(tmp_path, prefix, "-e", json.dumps({"benchmark_args": quick, "benchmark_nproc_per_node": 1}))
    assert run.status == 0, run.output
    [only] = found["runs"]
    assert (only["name"], only["nodes"], only["status"]) == ("node", ["here"], "succeeded")
    assert [one["node"] for one in only["document"]["ranks"]] == ["here"]
    assert {one["device"] for one in only["document"]["measurements"]} == {"cpu"}
    assert "changed=0" in run.words
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("allreduce-benchmark.*"))


@pytest.mark.long
@pytest.mark.parametrize("options", [[], ["--check"]], ids=["run", "check"])
def test_an_environment_without_pytorch_is_said(tmp_path, options):
    python = tmp_path / "prefix" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    run, found = alone(tmp_path, tmp_path / "prefix", *options)
    if options:
        assert (run.status, found) == (0, None), run.output
        return
    assert run.status != 0
    assert "Runs of the benchmark failed on here: ModuleNotFoundError: No module named 'torch'." in run.words
    assert [one["status"] for one in found["runs"]] == ["failed", "failed"]
