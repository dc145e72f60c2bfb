# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PyTorch DDP on this machine's processors: models, images of a folder, data workers that end with their rank."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

SCRIPT = "train_ddp.py"
COLOURS = {"blue": (20, 20, 220), "green": (20, 220, 20), "red": (220, 20, 20)}
QUICK = ("--samples", 128, "--batch-size", 16, "--epochs", 1, "--warmup-steps", 1)
LARGE = (*QUICK, "--samples", 32, "--learning-rate", 0.005)
COUNT = """
import sys, types
sys.path.insert(0, sys.argv[1])
import torch, train_ddp
with torch.device("meta"):
    for name in ("resnet50", "vit_b_16"):
        model = train_ddp.build_model(types.SimpleNamespace(model=name, image_size=224), 1000)
        print(name, sum(one.numel() for one in model.parameters()), *model(torch.empty(2, 3, 224, 224)).shape)
"""
# The script, which is killed as soon as it has its first checkpoint.
CUT = """
import os, sys
sys.path.insert(0, sys.argv.pop(1))
import train_ddp

write = train_ddp.replace_file

def cut(*given):
    write(*given)
    os._exit(9)

train_ddp.replace_file = cut
train_ddp.main()
"""
# The script, and which threads the process still has.
DONE = """
import os, sys
sys.path.insert(0, sys.argv.pop(1))
import train_ddp

train_ddp.main()
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
os.write(1, f"threads: {chr(32).join(names)}{chr(10)}".encode())
"""


def torchrun(ranks):
    return ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}")


@pytest.fixture
def train(run, tmp_path):
    """Train on so many ranks to the end; what was said, and the metrics."""

    def train(*arguments, ranks=1, script=SCRIPT):
        path = tmp_path / "metrics.json"
        ended = run(script, *arguments, launcher=torchrun(ranks), ALLREDUCE_METRICS=str(path))
        assert ended.status == 0, ended.output[-3000:]
        return ended.output, json.loads(path.read_text(encoding="utf-8"))

    return train


@pytest.fixture
def photos(tmp_path):
    """A folder of 3 x 24 images, whose classes are colours."""
    for name, colour in COLOURS.items():
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(24):
            shade = tuple(min(255, value + 3 * number) for value in colour)
            image = Image.new("RGB", (40 + number, 60 - number), shade)
            image.save(tmp_path / "photos" / name / f"{number:02}.{'png' if number % 2 else 'jpg'}")
    return tmp_path / "photos"


@pytest.fixture
def pair(start, end):
    """Start two ranks by hand, each with arguments of its own; how they ended."""

    def pair(*arguments):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = str(one.getsockname()[1])
        common = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        return [
            end(one) for one in [start(SCRIPT, *own, RANK=str(rank), **common) for rank, own in enumerate(arguments)]
        ]

    return pair


def processes(word):
    """Command lines of running processes with this word, by process."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().decode().split("\0")
        except OSError:
            continue
        if word in line and int(pid) != os.getpid():
            found[int(pid)] = line
    return found


def are_gone(word, seconds=15):
    """Tell whether no such process is left after at most so long."""
    deadline = time.monotonic() + seconds
    while processes(word) and time.monotonic() < deadline:
        time.sleep(0.2)
    return not processes(word)


def test_the_models_have_the_published_numbers_of_parameters(folder):
    done = subprocess.run([sys.executable, "-c", COUNT, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["resnet50 25557032 2 1000", "vit_b_16 86567656 2 1000"]


# Less than for 1000 classes: 990 rows of the last layer, and of ViT 192 of 197 positions.
def test_resnet_trains_where_the_collection_is(train):
    said, metrics = train("--model", "resnet50", *LARGE)
    assert re.search(r"(?m)^1 rank on cpu", said) and re.search(r"(?m), 1 rank$", said)
    assert (metrics["model"], metrics["parameters"]) == ("resnet50", 25_557_032 - 990 * 2049)
    assert (metrics["steps"], metrics["loss_first"] > 0) == (2, True)


def test_vit_trains_where_role_train_puts_its_files(train, folder, tmp_path):
    work = tmp_path / "run" / "work"
    shutil.copytree(
        folder.parent / "roles" / "benchmark" / "files" / "allreduce_benchmark", work / "allreduce_benchmark"
    )
    shutil.copy(folder / SCRIPT, work)
    _said, metrics = train("--model", "vit_b_16", *LARGE, script=work / SCRIPT)
    assert (metrics["model"], metrics["parameters"]) == ("vit_b_16", 86_567_656 - 990 * 769 - 192 * 768)
    assert (metrics["steps"], metrics["loss_first"] > 0) == (2, True)


def test_accumulated_steps_are_one_of_their_size(train):
    """ViT has no batch normalization, to which a batch in parts would be another one."""
    fewer = ("--model", "vit_b_16", "--samples", 64, "--epochs", 1, "--warmup-steps", 1, "--learning-rate", 0.005)
    _said, whole = train(*fewer, "--batch-size", 32)
    _said, parts = train(*fewer, "--batch-size", 16, "--accumulate", 2)
    assert (whole["steps"], parts["steps"], parts["accumulate"]) == (2, 4, 2)
    first, second, third, fourth = parts["losses"]
    assert [(first + second) / 2, (third + fourth) / 2] == pytest.approx(whole["losses"], rel=1e-3)
    assert whole["losses"][1] != pytest.approx(whole["losses"][0], rel=1e-3), "nothing was learned between the two"


def test_the_last_update_of_an_epoch_may_be_of_fewer_steps(train):
    """Two steps instead of four; the learning rate grows with the root of what the user asks for, here twice as much."""
    fewer = ("--model", "vit_b_16", "--samples", 32, "--epochs", 2, "--warmup-steps", 1)
    _said, whole = train(*fewer, "--batch-size", 32, "--learning-rate", 0.005 * 2**0.5)
    _said, parts = train(*fewer, "--batch-size", 16, "--learning-rate", 0.005, "--accumulate", 4)
    first, second, third, fourth = parts["losses"]
    assert [(first + second) / 2, (third + fourth) / 2] == pytest.approx(whole["losses"], rel=1e-3)
    assert whole["losses"][1] != pytest.approx(whole["losses"][0], rel=1e-3), "nothing was learned between the two"


def test_mixed_precision_learns(train):
    said, metrics = train(*QUICK, "--samples", 512, "--amp", "bf16")
    assert metrics["precision"] == "bfloat16" and metrics["loss_last"] < metrics["loss_first"], said


def test_two_ranks_learn_the_classes_of_a_folder(train, photos):
    said, metrics = train(
        "--data", photos, "--image-size", 24, "--workers", 2, "--epochs", 4, "--batch-size", 6, "--warmup-steps", 1, ranks=2
    )  # fmt: skip
    # 3 classes of 24 images, of which 3 are held out: 63, and 31 for each rank make 5 batches.
    assert (metrics["world_size"], metrics["epochs"], metrics["steps"]) == (2, 4, 20)
    assert metrics["loss_last"] < metrics["loss_first"]
    assert len(metrics["losses"]) == 20
    assert sum(metrics["losses"][:5]) / 5 == pytest.approx(metrics["loss_first"])
    assert metrics["accuracy"] > 0.8, said
    assert are_gone(str(photos))


def test_a_stopped_epoch_is_continued_where_it_was(start, end, train, photos, tmp_path):
    arguments = (
        "--data",
        photos,
        "--image-size",
        16,
        "--workers",
        2,
        "--batch-size",
        1,
        "--checkpoint-dir",
        tmp_path / "kept",
    )
    running = start(SCRIPT, *arguments, "--epochs", 500, launcher=torchrun(2))
    deadline = time.monotonic() + 120
    while not (tmp_path / "kept" / "checkpoint.pt").exists():
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    # As a scheduler does it: every process of the run is asked to end, data workers, too.
    for pid in processes(str(photos)):
        os.kill(pid, signal.SIGTERM)
    ended = end(running)
    where = re.search(r"stopped by SIGTERM; the checkpoint is at epoch (\d+), step (\d+)", ended.output)
    assert where, ended.output[-3000:]
    assert are_gone(str(photos))
    epoch, step = map(int, where.groups())
    said, metrics = train(*arguments, "--resume", "--epochs", epoch, ranks=2)
    assert f"resumed at epoch {epoch}, step {step}" in said
    assert metrics["steps"] == 31 - step


def test_an_epoch_that_was_cut_off_ends_with_the_same_weights(train, run, folder, tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    train(*QUICK, "--checkpoint-every", 3, "--checkpoint-dir", whole)
    cut = tmp_path / "cut.py"
    cut.write_text(CUT, encoding="utf-8")
    arguments = (*QUICK, "--checkpoint-every", 3, "--checkpoint-dir", part)
    assert run(cut, folder, *arguments, launcher=torchrun(1)).status != 0
    said, metrics = train(*arguments, "--resume")
    assert "resumed at epoch 1, step 3" in said
    assert metrics["steps"] == 5
    one, other = (torch.load(path / "checkpoint.pt", weights_only=True)["model"] for path in (whole, part))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_an_image_that_is_broken_ends_all_ranks_at_once(run, photos):
    broken = photos / "red" / "11.png"
    broken.write_bytes(broken.read_bytes()[:60])
    began = time.monotonic()
    ended = run(SCRIPT, "--data", photos, "--image-size", 16, "--workers", 2, "--batch-size", 5, launcher=torchrun(2))
    assert ended.status == 1
    assert f"{broken} cannot be decoded: " in ended.output
    assert time.monotonic() - began < 120
    assert are_gone(str(photos))


def test_ranks_whose_folders_differ_do_not_begin(pair, photos, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(photos, other)
    (other / "red" / "05.png").unlink()
    for ended in pair(("--data", photos), ("--data", other)):
        assert ended.status == 1
        assert "rank 1 has other images than rank 0; stage the data set again." in ended.output


def test_a_checkpoint_of_another_model_is_refused(train, run, tmp_path):
    train(*QUICK, "--checkpoint-dir", tmp_path)
    arguments = (*QUICK, "--checkpoint-dir", tmp_path, "--resume", "--model", "resnet50")
    ended = run(SCRIPT, *arguments, launcher=torchrun(1))
    assert ended.status == 1
    assert "The checkpoint is of model small, not resnet50; give it another directory." in ended.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--data", "."), "image_folder.py is not next to this script; under playbook train: -e train_files=examples/image_folder.py"),
        (("--model", "vit_b_16"), "-e train_files=roles/benchmark/files/allreduce_benchmark"),
        (("--model", "vit_b_16", "--image-size", "100"), "--image-size must be a multiple of 16 for vit_b_16, not 100"),
    ],
)  # fmt: skip
def test_a_script_that_was_copied_alone_says_what_it_lacks(run, folder, tmp_path, arguments, sentence):
    alone = tmp_path / "alone" / "work" / SCRIPT
    alone.parent.mkdir(parents=True)
    shutil.copy(folder / SCRIPT, alone)
    ended = run(alone, *arguments, launcher=torchrun(1))
    assert ended.status != 0
    assert sentence in ended.output


def test_pillow_is_missing(folder):
    program = "import sys; sys.modules['PIL'] = None; sys.path.insert(0, sys.argv[1]); import image_folder"
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "set python_env_packages: [pillow] and run site.yml" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the names of threads are read below /proc")
def test_no_thread_of_gloo_is_left_to_meet_the_end_of_the_interpreter(run, folder, tmp_path):
    """One that is can abort a rank that is done: "terminate called without an active exception"."""
    script = tmp_path / "done.py"
    script.write_text(DONE, encoding="utf-8")
    ended = run(script, folder, *QUICK, launcher=torchrun(2))
    assert ended.status == 0, ended.output[-3000:]
    threads = re.findall(r"threads: (.*)", ended.output)
    assert len(threads) == 2 and not [one for one in threads if "gloo" in one], threads
