# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Horovod with TensorFlow, two ranks on this machine's processors (nox -s examples_horovod, which compiles it)."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("horovod", reason="Horovod has no wheels: nox -s examples_horovod compiles it")


@pytest.fixture
def horovodrun(folder, tmp_path):
    """Train on two ranks; exit status, what was said, and the metrics."""

    def horovodrun(*arguments):
        path = tmp_path / "metrics.json"
        path.unlink(missing_ok=True)
        program = [sys.executable, str(Path(sys.executable).with_name("horovodrun")), "-np", "2", "-H", "localhost:2"]
        command = [*program, sys.executable, str(folder / "train_horovod_tf.py"), *map(str, arguments)]
        done = subprocess.run(
            command, env={**os.environ, "ALLREDUCE_METRICS": str(path), "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, json.loads(path.read_text("utf-8")) if path.exists() else None

    return horovodrun


def test_two_ranks_train_one_model_and_go_on_from_the_checkpoint(horovodrun, tmp_path):
    arguments = ("--samples", 1024, "--batch-size", 32, "--checkpoint-dir", tmp_path / "kept")
    status, said, metrics = horovodrun(*arguments, "--epochs", 3)
    assert status == 0, said[-3000:]
    assert "2 ranks on cpu with Gloo, TensorFlow 2." in said
    assert (metrics["world_size"], metrics["epochs"], metrics["device"]) == (2, 3, "cpu")
    assert metrics["loss_last"] < metrics["loss_first"] / 2
    assert metrics["samples_per_second"] > 0
    assert len(metrics["losses"]) == 3 and metrics["losses"][0] == metrics["loss_first"]

    status, said, again = horovodrun(*arguments, "--epochs", 4, "--resume")
    assert status == 0, said[-3000:]
    assert "resumed after epoch 3" in said and "epoch 4/4" in said
    assert again["loss_first"] < metrics["loss_last"]


def test_a_run_that_was_divided_ends_with_the_same_loss(horovodrun, tmp_path):
    """Optimizer, epoch and order of the samples are continued, too."""
    whole = horovodrun("--samples", 512, "--epochs", 2)[2]
    divided = ("--samples", 512, "--checkpoint-dir", tmp_path / "kept", "--resume", "--epochs")
    horovodrun(*divided, 1)
    assert horovodrun(*divided, 2)[2]["loss_last"] == pytest.approx(whole["loss_last"], rel=1e-4)


def test_too_few_samples(horovodrun):
    status, said, metrics = horovodrun("--samples", 100)
    assert (status != 0, metrics) == (True, None)
    assert re.search(r"100 samples do not fill a batch of 128; raise --samples or lower --batch-size", said)
