# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network in stages on this machine's processors: it learns what one process would, however it is divided."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from .conftest import EXAMPLES

torch = pytest.importorskip("torch")

SCRIPT = "train_pipeline.py"
SMALL = ("--samples", 256, "--batch-size", 32)
# The same network, data and order in one process, without stages and microbatches; the mean loss of an epoch.
PLAIN = """
import os, sys
sys.path.insert(0, sys.argv.pop(1))
os.environ["WORLD_SIZE"] = "2"
import torch, train_pipeline
args = train_pipeline.parse_arguments()
torch.manual_seed(args.seed)
net = torch.nn.Sequential(*train_pipeline.build_layers(args))
training, _evaluation = train_pipeline.synthesize(args.samples, args.seed, 32)
order = torch.Generator().manual_seed(args.seed)
optimizer = torch.optim.AdamW(net.parameters(), lr=args.learning_rate)
losses = []
for images, labels in torch.utils.data.DataLoader(training, args.batch_size, shuffle=True, generator=order, drop_last=True):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(sum(losses) / len(losses), sum(one.numel() for one in net.parameters()))
"""


@pytest.fixture
def train(run, tmp_path):
    """Train in so many stages to the end; what was said, and the metrics."""

    def train(*arguments, stages=2):
        path = tmp_path / "metrics.json"
        launcher = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={stages}")
        ended = run(SCRIPT, *arguments, launcher=launcher, ALLREDUCE_METRICS=str(path), CUDA_VISIBLE_DEVICES="")
        assert ended.status == 0, ended.output[-3000:]
        return ended.output, json.loads(path.read_text(encoding="utf-8"))

    return train


def test_it_learns(train):
    said, metrics = train("--samples", 1024, "--batch-size", 32, "--epochs", 4)
    losses = [float(loss) for loss in re.findall(r"^epoch .*loss (\S+)", said, re.M)]
    assert losses == sorted(losses, reverse=True) and len(losses) == 4
    assert losses[-1] < 0.8 * losses[0]
    assert metrics["losses"] == pytest.approx(losses, abs=1e-4)
    assert (metrics["stages"], metrics["world_size"], metrics["backend"], metrics["device"]) == (2, 2, "gloo", "cpu")
    assert metrics["accuracy"] > 0.3  # a guess is right in one of ten


@pytest.fixture(scope="module")
def plain():
    """(mean loss of an epoch, parameters) of one process that has the whole network."""
    command = [sys.executable, "-c", PLAIN, str(EXAMPLES), *map(str, SMALL)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loss, parameters = done.stdout.split()
    return float(loss), int(parameters)


@pytest.mark.parametrize(
    ("stages", "options"),
    [(2, ("--microbatches", 8)), (2, ("--microbatches", 2, "--schedule", "gpipe")), (3, ("--microbatches", 4))],
)
def test_it_is_the_same_training_however_it_is_divided(train, plain, stages, options):
    said, metrics = train(*SMALL, "--epochs", 1, *options, stages=stages)
    assert said.startswith(f"{stages} stages on cpu with gloo, of "), said
    assert metrics["losses"] == pytest.approx([plain[0]], rel=1e-3)
    assert (len(metrics["parameters"]), sum(metrics["parameters"])) == (stages, plain[1]), said


@pytest.mark.parametrize(
    ("arguments", "ranks", "sentence"),
    [
        ((), 1, "one rank has no other stage; start two"),
        (("--blocks", 1), 4, "4 ranks need as many layers, and there are 3; raise --blocks"),
        (("--microbatches", 2), 3, "--microbatches must be 3 or more, so that all stages have work"),
        (("--batch-size", 12), 2, "--batch-size must be a multiple of --microbatches, 8"),
        (("--width", 6), 2, "--width must be a multiple of 4"),
        (("--epochs", 0), 2, "--epochs must be 1 or more, not 0"),
    ],
)
def test_what_cannot_train_is_refused(run, arguments, ranks, sentence):
    ended = run(SCRIPT, *arguments, WORLD_SIZE=str(ranks))
    assert ended.status == 2
    assert sentence in ended.output


def test_the_data_is_missing(run, folder, tmp_path):
    shutil.copy(folder / SCRIPT, tmp_path)
    ended = run(tmp_path / SCRIPT)
    assert ended.status == 1
    assert "train_ddp.py is not next to this script" in ended.output
