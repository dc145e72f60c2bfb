# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program as a user runs it, on processors: one rank, and two that exchange by Gloo."""

import json
import os
import subprocess

import pytest
from allreduce_benchmark.formulas import bus_factor

from .conftest import FILES

QUICK = (
    "--device",
    "cpu",
    "--seconds",
    "0.01",
    "--repeats",
    "2",
    "--steps",
    "1",
    "--gemm-size",
    "128",
    "--image-size",
    "32",
)
COUNTED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
from allreduce_benchmark import resnet, vit
with torch.device("meta"):
    models = {"resnet50": resnet.resnet50(), "vit_b_16": vit.VisionTransformer()}
    image = torch.empty(2, 3, 224, 224)
    shapes = {name: list(model(image).shape) for name, model in models.items()}
counts = {name: sum(one.numel() for one in model.parameters()) for name, model in models.items()}
print(json.dumps([counts, shapes, {"resnet50": resnet.PARAMETERS, "vit_b_16": vit.PARAMETERS}]))
"""


@pytest.fixture(scope="module")
def alone(benchmark):
    return benchmark(*QUICK)[0]


@pytest.fixture(scope="module")
def pair(benchmark):
    return benchmark(*QUICK, "--only", "gemm", "collectives", "training", ranks=2)[0]


def named(document, name):
    return [one for one in document["measurements"] if one["name"] == name]


def test_the_models_have_the_known_numbers_of_parameters(python):
    done = subprocess.run([python, "-c", COUNTED, str(FILES)], capture_output=True, text=True, check=True)
    counts, shapes, told = json.loads(done.stdout)
    assert counts == told == {"resnet50": 25_557_032, "vit_b_16": 86_567_656}
    assert shapes == {"resnet50": [2, 1000], "vit_b_16": [2, 1000]}


def test_however_many_ranks_there_are_each_has_batches(python):
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
from allreduce_benchmark.images import ahead, loader, plain
from allreduce_benchmark.place import Place
place = Place(torch.device("cpu"), rank=1023, world_size=1024)
first = next(plain(place, loader(place, 16, 256, 0, pinned=False)))[0]
second = next(ahead(place, loader(place, 16, 256, 0, pinned=True), torch.float32))[0]
assert first.shape == second.shape == (256, 3, 16, 16)
assert torch.allclose(first, second, atol=1e-5) and second.is_contiguous(memory_format=torch.channels_last)
"""
    subprocess.run([python, "-c", program, str(FILES)], check=True, timeout=120)


def test_every_measurement_has_figures_with_their_repetitions_or_a_code(alone):
    for one in alone["measurements"]:
        assert one["unit"]
        assert one["device"] == "cpu"
        if one["status"] == "measured":
            assert len(one["repetitions"]) == 2
            assert 0 < one["least"] <= one["median"] <= one["most"]
        else:
            assert (one["status"], "median" in one) == ("not_measured", False)
            assert one["code"] in {"no_gpu", "one_rank"}
            assert one["reason"]


def test_a_processor_measures_what_it_can(alone):
    measured = {(one["name"], *one["case"].values()) for one in alone["measurements"] if one["status"] == "measured"}
    assert measured == {
        ("gemm", "fp32", 128), ("gemm", "bf16", 128), ("memory_copy", 1 << 27),
        ("training", "resnet50", "plain", 32, 1), ("training", "resnet50", "tuned", 32, 1),
    }  # fmt: skip


def test_what_was_not_asked_for_is_not_a_result(alone):
    assert {one["case"]["model"] for one in named(alone, "training")} == {"resnet50"}


def test_the_document_says_what_was_measured_on(alone):
    assert (alone["format"], alone["world_size"], alone["backend"]) == (1, 1, None)
    assert alone["started"] <= alone["finished"]
    assert alone["versions"]["torch"]
    assert [(one["rank"], one["device"]) for one in alone["ranks"]] == [(0, "cpu")]
    assert alone["options"]["gemm_size"] == 128
    assert [one["during"] for one in alone["samples"]] == alone["options"]["only"]


def test_both_ways_to_train_are_described(alone):
    found = {one["case"]["arm"]: one["detail"] for one in named(alone, "training") if one["status"] == "measured"}
    assert {name: (one["precision"], one["memory_format"]) for name, one in found.items()} == {
        "plain": ("float32", "contiguous"),
        "tuned": ("float32", "channels_last"),
    }
    for one in found.values():
        assert one["parameters"] == 25_557_032
        assert one["step_seconds"]["communication"] is None
        assert one["step_seconds"]["total"] > 0


def test_two_ranks_measure_collectives_between_them(pair):
    assert (pair["world_size"], pair["backend"]) == (2, "gloo")
    for one in [*named(pair, "all_reduce"), *named(pair, "all_gather")]:
        size, factor = one["case"]["bytes"], bus_factor(one["name"], 2)
        assert one["status"] == "measured"
        assert one["rank"] is None
        assert one["least"] <= size / one["detail"]["seconds"] / 1e9 * factor * 1.0001
        assert size / one["detail"]["seconds"] / 1e9 * factor <= one["most"] * 1.0001


def test_two_ranks_train_together_and_each_measures_its_own_device(pair):
    training = [one for one in named(pair, "training") if one["status"] == "measured"]
    assert [one["case"]["arm"] for one in training] == ["plain", "tuned"]
    for one in training:
        seconds = one["detail"]["step_seconds"]
        assert one["case"]["ranks"] == 2
        parts = seconds["compute"] + seconds["communication"] + seconds["data"]
        assert parts == pytest.approx(seconds["total"], rel=1e-3)
        assert one["median"] == pytest.approx(2 * one["detail"]["batch_per_rank"] / seconds["total"], rel=0.5)
    assert [(one["rank"], one["case"]["precision"]) for one in named(pair, "gemm") if one["status"] == "measured"] == [
        (0, "fp32"), (0, "bf16"), (1, "fp32"), (1, "bf16"),
    ]  # fmt: skip


def test_the_program_starts_ranks_itself_wherever_it_is_called(python, tmp_path):
    (tmp_path / "timeit.py").write_text(
        "raise ImportError", encoding="utf-8"
    )  # a user's own file with the name of a module
    command = [
        python,
        str(FILES / "benchmark.py"),
        *QUICK,
        "--ranks",
        "3",
        "--only",
        "collectives",
        "--output",
        "found.json",
    ]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True, capture_output=True)
    found = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert found["world_size"] == 3
    assert {one["status"] for one in found["measurements"]} == {"measured"}


def test_a_node_has_the_name_that_the_launcher_gives_it(benchmark):
    found = benchmark(*QUICK, "--only", "gemm", ALLREDUCE_NODE="gpu-7")[0]
    assert [one["node"] for one in found["ranks"]] == ["gpu-7"]


def test_a_run_leaves_parts_out_that_a_user_asked_for(benchmark):
    found = benchmark(*QUICK, "--only", "gemm", "memory", "--at-most", "memory", "training")[0]
    assert {one["name"] for one in found["measurements"]} == {"memory_copy"}
    assert found["options"]["only"] == ["memory"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--device", "cuda"), "--device cuda: PyTorch"),
        (("--image-size", "100"), "must be a multiple of 16, not 100"),
        (("--workers", "-1"), "must be a number from 0, not -1"),
        (("--seconds", "nan"), "must be a number of seconds above 0, at most 3600, not nan"),
        (("--seconds", "0"), "must be a number of seconds above 0, at most 3600, not 0"),
        (("--steps", "0"), "must be a number from 1, not 0"),
        (("--only", "gem"), "invalid choice: 'gem'"),
    ],
)
def test_wrong_arguments_are_refused_with_one_sentence(benchmark, arguments, words):
    found, said = benchmark(*arguments, status=1, CUDA_VISIBLE_DEVICES="")
    assert found is None
    assert words in said
    assert "Traceback" not in said
