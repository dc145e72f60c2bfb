# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DataParallel on this machine: without a GPU it runs the module, and says so."""

import json
import re
import shutil

import pytest

torch = pytest.importorskip("torch")

SCRIPT = "train_dp.py"
SMALL = ("--samples", 1024, "--batch-size", 32)


def test_it_learns_and_says_what_is_parallel(run, tmp_path):
    path = tmp_path / "metrics.json"
    ended = run(SCRIPT, *SMALL, "--epochs", 3, ALLREDUCE_METRICS=str(path), CUDA_VISIBLE_DEVICES="")
    assert ended.status == 0, ended.output[-3000:]
    assert ended.output.startswith("one processor: DataParallel only runs the module, nothing is done in parallel")
    losses = [float(loss) for loss in re.findall(r"^epoch .*loss (\S+)", ended.output, re.M)]
    assert losses == sorted(losses, reverse=True) and len(losses) == 3
    metrics = json.loads(path.read_text(encoding="utf-8"))
    assert (metrics["epochs"], metrics["world_size"], metrics["gpus"]) == (3, 1, 0)
    assert metrics["losses"] == pytest.approx(losses, abs=1e-4)
    assert metrics["accuracy"] > 0.3  # a guess is right in one of ten


@pytest.mark.parametrize(
    ("arguments", "variables", "sentence"),
    [
        (("--samples", 10), {}, "10 samples do not fill a batch of 64; raise --samples or lower --batch-size."),
        ((), {"RANK": "1", "WORLD_SIZE": "2"}, "use train_ddp.py with a launcher"),
    ],
)
def test_what_cannot_train_is_refused(run, arguments, variables, sentence):
    ended = run(SCRIPT, *arguments, **variables, CUDA_VISIBLE_DEVICES="")
    assert ended.status != 0
    assert sentence in ended.output


def test_the_network_is_missing(run, folder, tmp_path):
    shutil.copy(folder / SCRIPT, tmp_path)
    ended = run(tmp_path / SCRIPT)
    assert ended.status == 1
    assert "train_ddp.py is not next to this script" in ended.output
