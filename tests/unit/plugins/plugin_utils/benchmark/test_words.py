# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.benchmark.words import binary, checks, summary, title
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.benchmark import Benchmark
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.check import CATEGORIES
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse

from tests.support.benchmark import cluster, document, lacking, run, training

FAILED = {
    "name": "nodes",
    "nodes": ["a", "b"],
    "status": "failed",
    "reason": "rank 3 exited with code 1",
    "document": None,
}
SLOW = cluster({"a": [280.0, 280.0], "b": [280.0, 140.0]})


def stated(found):
    return {(one.node, one.name): (one.status, one.measured, one.reason) for one in checks(parse(Benchmark, found))}


def test_a_slow_gpu_is_a_failed_check_of_its_node():
    found = stated(SLOW)
    assert found["a", "benchmark_gpus"] == ("passed", "2 of 2 figures", "")
    assert found["b", "benchmark_gpus"] == (
        "failed", "1 of 2 figures", "GPU 1, matrix product bf16: 140 TFLOP/s, median 280",
    )  # fmt: skip
    assert found["cluster", "benchmark_runs"] == ("passed", "2 of 2 runs", "")


def test_too_few_to_compare_is_said_and_is_no_success():
    found = stated(cluster({"a": [280.0]}))
    reason = "fewer than 4 GPUs of the same kind were measured, so there is nothing to compare with"
    assert found["a", "benchmark_gpus"] == ("skipped", "", reason)
    assert found["a", "benchmark_node"][0] == "skipped"


def test_processors_are_said_not_to_be_compared():
    found = cluster({"a": [280.0] * 4})
    for one in found["runs"][0]["document"]["measurements"]:
        one["device"] = "cpu"
    assert stated(found)["a", "benchmark_gpus"] == (
        "skipped",
        "",
        "processors were measured, but only GPUs are compared",
    )


def test_a_run_that_failed_is_a_failed_check_of_the_cluster():
    found = stated({**SLOW, "runs": [*SLOW["runs"], FAILED]})
    assert found["cluster", "benchmark_runs"] == ("failed", "2 of 3 runs", "on a and b: rank 3 exited with code 1")


def test_every_check_is_of_a_category_that_the_report_knows():
    assert {one.category for one in checks(parse(Benchmark, SLOW))} <= set(CATEGORIES)


def test_the_summary_names_throughput_growth_and_what_is_slow():
    runs = [
        run(
            "node",
            ["a"],
            document(
                "a",
                [training(1700.0, 4), lacking("training", "no_gpu", case={"model": "vit_b_16", "arm": "plain"})],
                gpus=4,
            ),
        ),
        run("gpu", ["a"], document("a", [training(450.0, 1)], gpus=1)),
    ]
    found = summary(parse(Benchmark, {**SLOW, "runs": [*SLOW["runs"], *runs]}))
    assert "a: 4 ranks on NVIDIA A100-SXM4-80GB" in found["lines"]
    assert "  training ResNet-50 tuned: 1,700 images/s" in found["lines"]
    assert "  training ViT-B/16 plain: not measured, because of no_gpu" in found["lines"]
    assert "ResNet-50 tuned, images/s: 1 rank 450, 4 ranks 1,700; scaling efficiency 94%" in found["lines"]
    assert found["lines"][-1] == "b is slower than its peers: GPU 1, matrix product bf16: 140 TFLOP/s, median 280."
    assert (found["verdict"], found["slow"]) == ("", 1)


def test_the_verdict_names_the_runs_that_failed():
    found = summary(parse(Benchmark, {**SLOW, "runs": [FAILED]}))
    assert found["verdict"] == "Runs of the benchmark failed on a and b: rank 3 exited with code 1."
    assert found["lines"] == ["a and b: failed, rank 3 exited with code 1"]


@pytest.mark.parametrize(
    ("name", "case", "words"),
    [
        ("memory_copy", {"bytes": 1}, "copy in memory"),
        ("peer_copy", {}, "GPU to GPU"),
        ("peer_copy", {"from": 2, "to": 0, "peer_access": True}, "GPU to GPU 2 to 0"),
        ("all_gather", {"bytes": 1000}, "all-gather 1000 bytes"),
        ("training", {"model": "own", "arm": "plain"}, "training own plain"),
        ("something", {}, "something"),
    ],
)
def test_a_figure_has_a_name(name, case, words):
    assert title(name, case) == words


@pytest.mark.parametrize(("size", "words"), [(0, "0 bytes"), (1 << 20, "1 MiB"), (3 << 10, "3 KiB"), (None, "")])
def test_sizes(size, words):
    assert binary(size) == words


KNOWN = [
    {"model": "resnet50", "gpus": 2, "images_per_second": 400, "source": "acceptance of May"},
    {"model": "resnet50", "gpus": 2, "images_per_second": 2000, "arm": "tuned"},
    {"model": "resnet50", "gpus": 4, "images_per_second": 800},
]


@pytest.mark.parametrize(
    ("arm", "ranks", "device", "share"),
    [
        ("plain", 2, "cuda", ", 75 % of 400 (acceptance of May)"),
        ("tuned", 2, "cuda", ", 15 % of 2,000"),
        ("plain", 1, "cuda", ""),
        ("tuned", 4, "cuda", ""),
        ("plain", 2, "cpu", ""),
    ],
)
def test_training_stands_beside_the_reference_of_the_same_model_loop_and_gpus(arm, ranks, device, share):
    alone = document("a", [training(300.0, ranks, arm=arm, device=device)], gpus=ranks)
    found = {**cluster({}), "runs": [run("node", ["a"], alone)], "reference": KNOWN}
    assert f"  training ResNet-50 {arm}: 300 images/s{share}" in summary(parse(Benchmark, found))["lines"]
