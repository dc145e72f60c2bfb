# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.benchmark import Benchmark
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import document as as_json
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import html, junit
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.benchmark import build
from ansible_collections.allreduce.gpu.tests.report import cluster

from tests.support.benchmark import cluster as benchmark_of
from tests.support.benchmark import document, lacking, measured, phases, run, training, whole


def section(found):
    return build(parse(Benchmark, found))


def report(found):
    return cluster.build_report(cluster.verification(), cluster.results(), "Cluster A", found)


def test_without_a_benchmark_there_is_no_section():
    assert build(None) is None
    assert 'id="benchmark"' not in html.render(report(None))


def test_figures_are_those_of_all_that_are_alike():
    [row] = section(whole()).figures
    assert (row.title, row.of, row.unit) == ("matrix product bf16", "4 GPUs, NVIDIA A100-SXM4-80GB", "TFLOP/s")
    assert (row.median, row.least, row.most, row.code) == (280.0, 140.0, 280.0, "")
    assert row.slow == ("gpu-2 GPU 1: 140",)


def test_a_figure_stands_beside_the_limit_of_its_card():
    [row] = section(whole()).figures
    assert (row.limit, row.share) == (312, "90 % of 312")
    assert "90 % of 312" in html.render(report(whole()))
    figures = [measured("gemm", 280.0, 0, {"precision": "bf16"}), measured("memory_copy", 3009.8, 0, {})]
    alone = section({**benchmark_of({}), "runs": [run("node", ["a"], document("a", figures, 1, "Unknown GPU"))]})
    assert [(one.limit, one.share) for one in alone.figures] == [(None, ""), (None, "")]


def test_the_benchmark_comes_before_the_nodes():
    page = html.render(report(whole()))
    assert page.index('<h2 id="benchmark">') < page.index('<h2 id="nodes">')
    assert page.index('href="#benchmark"') < page.index('href="#nodes"')


def test_what_was_not_measured_is_said_once_with_its_nodes():
    [row] = section(whole()).absent
    assert (row.title, row.nodes, row.code) == ("matrix product tf32", ("gpu-1", "gpu-2"), "not_supported")
    assert row.reason


def test_training_stands_beside_the_plain_loop_of_the_same_run():
    rows = section(whole()).training
    assert [(row.ranks, row.arm, row.images_per_second) for row in rows] == [
        (1, "plain", 160.0), (1, "tuned", 960.0), (2, "plain", 300.0), (2, "tuned", 1800.0), (2, "plain", 300.0), (2, "tuned", 1800.0),
        (4, "tuned", 3200.0),
    ]  # fmt: skip
    assert [row.times_plain for row in rows] == [None, 6.0, None, 6.0, None, 6.0, None]


def test_the_time_of_a_step_is_divided_and_its_bottleneck_named():
    rows = section(whole()).training
    assert dict(rows[3].phases) == pytest.approx({"compute": 250.0, "communication": 30.0, "data": 4.0})
    assert rows[3].bottleneck == "compute"
    assert dict(rows[1].phases)["communication"] is None
    assert rows[0].phases == (("compute", None), ("communication", None), ("data", None))
    assert rows[0].bottleneck == ""
    assert rows[3].how == "cuda, bfloat16, batch 256, channels-last, compiled"


def test_what_nvml_answered_has_the_columns_that_any_gpu_answered():
    found = section(whole())
    assert found.quantities == ("Power, W", "Temperature, °C")
    assert [(row.during, row.cells) for row in found.samples] == [("gemm", ("390", "61"))]


def test_sentences_name_versions_failures_and_processors():
    failed = {
        "name": "nodes",
        "nodes": ["a", "b"],
        "status": "failed",
        "reason": "rank 1 exited with code 1",
        "document": None,
    }
    cpu = document("a", [training(2.0, 1, device="cpu")], gpus=1)
    cpu["ranks"][0]["device"] = "cpu"
    found = section({**benchmark_of({}), "runs": [run("node", ["a"], cpu), failed]})
    assert found.sentences == (
        "The run on a and b failed: rank 1 exited with code 1.",
        "Measured with PyTorch 2.13.0, CUDA 12.6.",
        "Figures of processors prove that the program works; they say nothing about a GPU.",
    )


def test_checks_of_the_benchmark_are_checks_of_the_report():
    found = report(whole())
    before, after = report(None).verdict, found.verdict
    assert after.checks["failed"] == before.checks["failed"] + 1
    [slow] = [one for one in found.nodes[1].checks if one.category == "benchmark" and one.status == "failed"]
    assert (slow.name, slow.node) == ("benchmark_gpus", "gpu-2")
    assert [one.name for one in found.cluster_checks if one.category == "benchmark"] == ["benchmark_runs"]
    assert 'classname="benchmark"' in junit.render(found)


def test_a_node_that_was_not_verified_keeps_its_checks():
    found = report(benchmark_of({"elsewhere": [280.0, 280.0, 280.0, 140.0]}))
    assert ("elsewhere", "failed") in {(one.node, one.status) for one in found.cluster_checks}


def test_the_page_has_tables_a_curve_and_what_was_not_measured():
    page = html.render(report(whole()))
    for words in (
        "Throughput of ResNet-50, tuned loop, images/s", "4 GPUs, NVIDIA A100-SXM4-80GB", "gpu-2 GPU 1: 140",
        "most of it is compute", "not_supported", "Power, W", 'class="linear"', 'href="#benchmark"',
    ):  # fmt: skip
        assert words in page
    assert "undefined" not in page.lower()


def test_one_node_with_one_gpu_is_a_page_without_a_curve():
    found = document(
        "gpu-1",
        [measured("gemm", 280.0, 0, {"precision": "bf16"}), training(900.0, 1), lacking("peer_copy", "one_gpu", 0)],
        gpus=1,
    )
    page = html.render(report({**benchmark_of({}), "runs": [run("node", ["gpu-1"], found)]}))
    assert "Too few are alike to tell a slow one." in page
    assert "plot-1-title" not in page
    assert "one_gpu" in page


def test_processors_are_named_as_such_and_noise_is_no_time():
    found = document("a", [measured("gemm", 0.03, 0, {"precision": "fp32"}, "TFLOP/s", device="cpu"),
                           training(2.0, 1, device="cpu", detail=phases(0.8, 1.0, None))], gpus=1, model="AMD EPYC")  # fmt: skip
    shown = report({**benchmark_of({}), "runs": [run("node", ["a"], found)]})
    assert (shown.benchmark.figures[0].of, shown.benchmark.figures[0].code) == ("1 rank, AMD EPYC", "no_gpu")
    page = html.render(shown)
    assert "compute 1,000, data within noise; most of it is compute" in page
    assert "only GPUs are compared" in page


def test_text_of_a_document_is_escaped():
    found = whole()
    found["runs"][0]["document"]["ranks"][0]["name"] = cluster.HOSTILE
    found["runs"][0]["reason"] = found["run_id"] = cluster.HOSTILE
    assert cluster.HOSTILE not in html.render(report(found))


def test_the_section_is_in_the_json_document():
    found = json.loads(as_json.render(report(whole())))["benchmark"]
    assert found["run_id"] == "20261123T150000"
    assert found["curves"][1]["points"][-1]["ranks"] == 4


def test_training_stands_beside_its_reference():
    known = [
        {"model": "resnet50", "gpus": 4, "images_per_second": 4000, "arm": "tuned", "source": "acceptance of <May>"}
    ]
    rows = section({**whole(), "reference": known}).training
    assert [row.share for row in rows if row.share] == ["80 % of 4,000 (acceptance of <May>)"]
    page = html.render(report({**whole(), "reference": known}))
    assert "80 % of 4,000 (acceptance of &lt;May&gt;)" in page and "Of the reference" in page
    assert "Of the reference" not in html.render(report(whole()))


@pytest.mark.parametrize("version", ["²", "9" * 5000])
def test_a_version_that_is_no_number_stands_as_it_is(version):
    """The program that says it runs as a user on a node."""
    found = whole()
    for one in found["runs"]:
        one["document"]["versions"] = {"cudnn": version}
    assert section(found).sentences[-1] == f"Measured with cuDNN {version}."
