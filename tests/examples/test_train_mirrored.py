# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TensorFlow on one node and on two, which are processes here: one replica each, on the processor."""

import importlib.util
import json
import os
import re
import shutil
import socket

import pytest

SCRIPT = "train_mirrored.py"
SMALL = ("--samples", 1024)


@pytest.fixture
def two(start, end, tmp_path):
    """Train on two nodes; what each said. Their checkpoints stay from call to call."""

    def train(epochs):
        ports = [free_port(), free_port()]
        workers = [f"127.0.0.1:{port}" for port in ports]
        nodes = []
        for index in range(2):
            config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
            arguments = (*SMALL, "--epochs", epochs, "--checkpoint-dir", tmp_path / f"node{index}")
            variables = {"TF_CONFIG": json.dumps(config), "ALLREDUCE_METRICS": str(tmp_path / f"metrics{index}.json")}
            nodes.append(start(SCRIPT, *arguments, **variables))
        return [end(one) for one in nodes]

    return train


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def losses(ended):
    assert ended.status == 0, ended.output[-3000:]
    return [float(loss) for loss in re.findall(r"^epoch .*loss (\S+)", ended.output, re.M)]


def test_a_node_alone(run, tmp_path):
    path = tmp_path / "metrics.json"
    ended = run(SCRIPT, *SMALL, "--epochs", 3, ALLREDUCE_METRICS=str(path))
    first, _second, last = losses(ended)
    assert last < first / 2
    metrics = json.loads(path.read_text(encoding="utf-8"))
    assert (metrics["epochs"], metrics["world_size"], metrics["device"]) == (3, 1, "cpu")
    assert metrics["losses"] == pytest.approx(losses(ended), abs=1e-4)
    assert metrics["samples_per_second"] > 0


def test_two_nodes_train_one_model_and_go_on_from_their_checkpoints(two, tmp_path):
    both = two(2)
    assert losses(both[0]) == losses(both[1])
    assert len(losses(both[0])) == 2
    assert "2 replicas" in both[0].output
    metrics = json.loads((tmp_path / "metrics0.json").read_text(encoding="utf-8"))
    assert metrics["world_size"] == 2
    assert not (tmp_path / "metrics1.json").exists()

    again = two(3)
    assert all("resumed after epoch 2" in one.output for one in again)
    assert losses(again[0]) == losses(again[1])
    assert losses(again[0])[0] < losses(both[0])[1]

    shutil.rmtree(tmp_path / "node1")
    for one in two(4):
        assert one.status != 0
        assert "epochs here, and others on another node; remove it on all." in one.output


def test_too_few_samples(run):
    ended = run(SCRIPT, "--samples", 10)
    assert ended.status != 0
    assert "10 samples do not fill a batch of 64; raise --samples or lower --batch-size." in ended.output


@pytest.mark.parametrize(
    ("variables", "workers", "number"),
    [
        ({}, None, 0),
        ({"ALLREDUCE_NODE_ADDRESSES": "10.0.0.1", "ALLREDUCE_NODE_NUMBER": "0"}, None, 0),
        (
            {"ALLREDUCE_NODE_ADDRESSES": "10.0.0.1,fd00::2", "ALLREDUCE_NODE_NUMBER": "1"},
            ["10.0.0.1:29600", "[fd00::2]:29600"],
            1,
        ),
    ],
)
def test_role_train_tells_the_nodes(monkeypatch, folder, variables, workers, number):
    for name in ("TF_CONFIG", "ALLREDUCE_NODE_ADDRESSES", "ALLREDUCE_NODE_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.spec_from_file_location("train_mirrored", folder / SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.join_nodes(29600) == number
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    assert config.get("cluster", {}).get("worker") == workers
    assert config.get("task", {}).get("index", 0) == number
