# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real CuPy on a machine without a GPU, which NumPy stands in for; where there is a GPU, CuPy itself."""

import importlib.util
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest

SCRIPT = "preprocess_cupy.py"


@pytest.fixture(scope="module")
def script():
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("preprocess_cupy", Path(__file__).parents[2] / "examples" / SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def images(tmp_path):
    """Two files of 8 images of 32 x 16 pixels; {name: array}."""
    numbers = numpy.random.default_rng(1)
    made = {
        f"{name}.npy": numbers.integers(0, 200 + 50 * index, (8, 16, 32, 3), dtype="uint8")
        for index, name in enumerate("ab")
    }
    (tmp_path / "in").mkdir()
    for name, array in made.items():
        numpy.save(tmp_path / "in" / name, array)
    return made


@pytest.fixture
def prepare(run, tmp_path):
    return lambda *more: run(SCRIPT, "--input", tmp_path / "in", "--output", tmp_path / "out", "--size", 8, *more)


def test_images_are_shrunk_and_normalized_over_all_files(images, prepare, tmp_path):
    ended = prepare()
    assert ended.status == 0, ended.output
    results = {name: numpy.load(tmp_path / "out" / name) for name in images}
    together = numpy.concatenate([one.reshape(-1, 3) for one in images.values()]).astype("float64")
    mean, deviation = together.mean(axis=0), together.std(axis=0)
    for name, array in images.items():
        assert (results[name].shape, results[name].dtype) == ((8, 3, 8, 8), numpy.float16)
        block = array[5, 2:4, 4:8].reshape(-1, 3).mean(axis=0)  # row 1, column 1 of the small image
        assert results[name][5, :, 1, 1] == pytest.approx((block - mean) / deviation, abs=2e-3)
    again = prepare()
    assert "2 files were there already, 0 came" in again.output


def test_a_run_that_was_cut_off_goes_on_with_the_same_numbers(images, prepare, tmp_path):
    prepare()
    whole = (tmp_path / "out" / "b.npy").read_bytes()
    (tmp_path / "out" / "b.npy").rename(tmp_path / "out" / "b.new")  # as a killed run leaves it
    assert "1 files were there already, 1 came" in prepare().output
    assert (tmp_path / "out" / "b.npy").read_bytes() == whole


def test_what_computes_is_said(images, prepare):
    said = prepare().output.splitlines()[0]
    assert said.startswith(("CuPy 1", "NumPy on the processor, as CuPy finds no GPU that computes ("))
    assert prepare("--arrays", "numpy").output.startswith("NumPy on the processor, as asked\n")
    if said.startswith("NumPy"):
        ended = prepare("--arrays", "cupy")
        assert ended.status != 0
        assert ended.output.startswith("CuPy finds no GPU that computes (")


def test_the_next_files_are_read_while_one_is_computed(script):
    started = {item: threading.Event() for item in range(5)}

    def work(item):
        started[item].set()
        return item

    with ThreadPoolExecutor(2) as pool:
        for item in script.ahead(pool, work, range(5), 2):
            assert all(started[coming].wait(10) for coming in range(item, min(item + 3, 5)))


def test_no_more_is_read_ahead_than_fits(script):
    taken = []
    with ThreadPoolExecutor(2) as pool:
        found = script.ahead(pool, lambda item: item, (taken.append(item) or item for item in range(9)), 2)
        assert next(found) == 0 and taken == [0, 1, 2]
        assert list(found) == list(range(1, 9))


@pytest.mark.parametrize(
    ("seconds", "binds"), [((9.0, 2.0, 1.0), "reading"), ((7.0, 2.0, 7.9), "computing"), ((1.0, 2.0, 9.0), "writing")]
)
def test_what_binds_is_what_takes_longest_with_all_its_threads(script, seconds, binds):
    busy = script.Busy(4)
    busy.seconds = dict(zip(("reading", "computing", "writing"), seconds, strict=True))
    assert busy.sentence(3.0).endswith(f"of 3.0 s, with 4 threads that read and as many that write: {binds} binds")
    assert f"reading {seconds[0] / 4:.1f} s, computing 2.0 s, writing {seconds[2] / 4:.1f} s" in busy.sentence(3.0)


def test_a_run_says_what_bound_it_and_one_without_work_does_not(images, prepare):
    said = prepare("--threads", 2).output.splitlines()[-1]
    assert re.fullmatch(
        r"reading [\d.]+ s, computing [\d.]+ s, writing [\d.]+ s of [\d.]+ s, .*: (reading|computing|writing) binds",
        said,
    )
    assert "binds" not in prepare().output


def test_bad_input(images, prepare, run, tmp_path):
    ended = run(SCRIPT, "--input", tmp_path, "--output", tmp_path / "out")
    assert f"--input {tmp_path} has no *.npy" in ended.output
    ended = run(SCRIPT, "--input", tmp_path / "in", "--output", tmp_path / "out", "--size", 7)
    assert "--size 7 does not divide images of 32 x 16." in ended.output
    numpy.save(tmp_path / "in" / "c.npy", numpy.zeros((4, 4)))
    assert f"{tmp_path}/in/c.npy has float64 of shape (4, 4); images are uint8" in prepare().output
