# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real CuPy on a machine without a GPU, which NumPy stands in for; where there is a GPU, CuPy itself."""

import numpy
import pytest

SCRIPT = "preprocess_cupy.py"


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


def test_bad_input(images, prepare, run, tmp_path):
    ended = run(SCRIPT, "--input", tmp_path, "--output", tmp_path / "out")
    assert f"--input {tmp_path} has no *.npy" in ended.output
    ended = run(SCRIPT, "--input", tmp_path / "in", "--output", tmp_path / "out", "--size", 7)
    assert "--size 7 does not divide images of 32 x 16." in ended.output
    numpy.save(tmp_path / "in" / "c.npy", numpy.zeros((4, 4)))
    assert f"{tmp_path}/in/c.npy has float64 of shape (4, 4); images are uint8" in prepare().output
