# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CIFAR-10 as its authors publish it: what is read of it, what is refused, and that it trains."""

import importlib.util
import json
import os
import pickle

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

NAMES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
COUNT = 20  # images of a file


@pytest.fixture
def cifar10(folder):
    spec = importlib.util.spec_from_file_location("cifar10", folder / "cifar10.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def content(first=0):
    """As in a file of the original: rows of 3072 bytes, all red ones before all green ones; class 0 is black, 9 nearly white."""
    labels = [(first + number) % 10 for number in range(COUNT)]
    data = numpy.array([[28 * label] * 3072 for label in labels], dtype=numpy.uint8)
    data[:, 0] = 255  # the upper left pixel is red
    return {b"batch_label": b"one of them", b"labels": labels, b"data": data, b"filenames": [b"a.png"] * COUNT}


@pytest.fixture
def data(tmp_path):
    place = tmp_path / "data" / "cifar-10-batches-py"
    place.mkdir(parents=True)
    for number, name in enumerate(NAMES):
        (place / name).write_bytes(pickle.dumps(content(number), protocol=2))  # as Python 2 wrote them
    return place.parent


def test_images_and_classes_are_those_of_the_files(cifar10, data):
    found = cifar10.read_folder(data)
    assert (len(found.classes), found.classes[3]) == (10, "cat")
    assert found.training.images.shape == (5 * COUNT, 3, 32, 32) and found.evaluation.images.shape == (COUNT, 3, 32, 32)
    assert found.training.labels[:3].tolist() == [0, 1, 2] and found.evaluation.labels[0] == 5
    assert found.training.images[2, :, 0, 0].tolist() == [255, 56, 56]
    assert found.training.images[2, :, 31, 31].tolist() == [56, 56, 56]
    other = data / "cifar-10-batches-py" / "data_batch_5"
    other.write_bytes(pickle.dumps(content(7), protocol=2))
    assert cifar10.read_folder(data).digest() != found.digest()


@pytest.mark.parametrize("size", [32, 48])
def test_evaluation_takes_the_image_and_training_a_part_of_it(cifar10, data, size):
    found = cifar10.read_folder(data)
    still, moved = (cifar10.Images(found.training, size, training) for training in (False, True))
    (image, label), mean = still[1], torch.tensor(cifar10.MEAN)
    assert (image.shape, label) == ((3, size, size), 1)
    middle = (28 / 255 - mean) / torch.tensor(cifar10.DEVIATION)
    assert torch.allclose(image[:, size // 2, size // 2], middle, atol=1e-5)
    assert torch.equal(still[1][0], image)
    assert len({moved[1][0].numpy().tobytes() for _time in range(20)}) > 10
    assert moved[1][0].shape == (3, size, size)


class Calls:
    """Somebody's pickle: reading it would make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def broken(name, canary):
    whole = content()
    return {
        "absent": None,
        "cut off": pickle.dumps(whole, protocol=2)[:1000],
        "text": b"<html>not found</html>",
        "calls": pickle.dumps({**whole, b"labels": Calls(canary)}, protocol=2),
        "no labels": pickle.dumps({b"data": whole[b"data"]}, protocol=2),
        "fewer labels": pickle.dumps({**whole, b"labels": [1]}, protocol=2),
        "another class": pickle.dumps({**whole, b"labels": [10] * COUNT}, protocol=2),
        "floats": pickle.dumps({**whole, b"data": whole[b"data"].astype("float32")}, protocol=2),
        "another size": pickle.dumps({**whole, b"data": whole[b"data"][:, :3000]}, protocol=2),
        "a list": pickle.dumps([1, 2], protocol=2),
    }[name]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("absent", "cannot be read: No such file or directory; on a cluster every node needs it"),
        ("calls", "is no file of CIFAR-10 for Python: it names posix.mkdir, which CIFAR-10 has no use for."),
        *((name, "is no file of CIFAR-10 for Python: ") for name in ("cut off", "text", "no labels", "fewer labels", "another class")),
        *((name, "is no file of CIFAR-10 for Python: ") for name in ("floats", "another size", "a list")),
    ],
)  # fmt: skip
def test_a_file_that_is_none_of_them_is_refused(cifar10, data, tmp_path, name, sentence):
    path = data / "cifar-10-batches-py" / "data_batch_3"
    path.unlink()
    if (text := broken(name, tmp_path / "canary")) is not None:
        path.write_bytes(text)
    with pytest.raises(SystemExit) as ended:
        cifar10.read_folder(data)
    assert f"{path} {sentence}" in str(ended.value)
    assert not (tmp_path / "canary").exists()


def test_two_ranks_learn_it(run, data, tmp_path):
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    options = ("--epochs", 12, "--batch-size", 10, "--warmup-steps", 1, "--workers", 1)
    path = tmp_path / "metrics.json"
    ended = run("train_ddp.py", "--data", data, *options, launcher=launcher, ALLREDUCE_METRICS=str(path))
    assert ended.status == 0, ended.output[-3000:]
    metrics = json.loads(path.read_text(encoding="utf-8"))
    # 100 images, and 50 for each rank make 5 batches.
    assert (metrics["world_size"], metrics["steps"]) == (2, 60)
    assert metrics["loss_last"] < 0.7 * metrics["loss_first"]
