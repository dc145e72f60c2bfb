# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.benchmark.collect import collect
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.benchmark import Benchmark
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse

from tests.support.benchmark import document, lacking, measured, result

FOUND = document("gpu-1", [measured("gemm", 280.0, 0), lacking("peer_copy", "one_gpu", 0)])


def collected(*results):
    return parse(Benchmark, collect(results, "b1", "2026-11-23T15:20:00Z"))


def test_a_document_is_kept_as_it_is():
    found = collected(result(FOUND))
    assert (found.run_id, found.finished) == ("b1", "2026-11-23T15:20:00Z")
    [run] = found.runs
    assert (run.name, run.nodes, run.status) == ("node", ("gpu-1",), "succeeded")
    assert [one.value for one in run.document.measurements] == [280.0, None]
    assert run.document.measurements[1].code == "one_gpu"


@pytest.mark.parametrize(
    ("left", "reason"),
    [
        ({"msg": "Training failed on gpu-1: rank 0 exited with code 1\n  line", "training": {"status": "failed"}},
         "Training failed on gpu-1: rank 0 exited with code 1"),
        ({"msg": "gpu-1 has no user trainer."}, "gpu-1 has no user trainer."),
        ({}, "it left no result"),
        ({"training": {"status": "succeeded", "metrics": None}}, "it left no readable document"),
        ({"training": {"status": "succeeded", "metrics": {**FOUND, "format": 2}}}, "it left no readable document"),
    ],
)  # fmt: skip
def test_a_run_without_a_document_has_failed_with_a_reason(left, reason):
    [run] = collected({"name": "gpu", "nodes": ["gpu-1"], "result": left}).runs
    assert (run.status, run.reason, run.document) == ("failed", reason, None)


def with_figure(**changes):
    figure = {**measured("training", 280.0, None, {"model": "resnet50"}), **changes}
    return document("gpu-1", [figure])


@pytest.mark.parametrize(
    "found",
    [
        with_figure(median=1e308), with_figure(median=1e-308), with_figure(median=-1.0), with_figure(median=10**400), with_figure(median="1"),
        with_figure(case={"model": ["resnet50"]}), with_figure(detail={"step_seconds": {"compute": 1e308}}),
        with_figure(detail={"step_seconds": {"compute": float("nan")}}), {**FOUND, "world_size": 0}, {**FOUND, "measurements": {}},
    ],
)  # fmt: skip
def test_figures_that_no_report_can_compare_are_no_document(found):
    """A node that others do not trust wrote it: each of them ended the report of all nodes with an exception."""
    [run] = collected(result(found)).runs
    assert (run.status, run.reason, run.document) == ("failed", "it left no readable document", None)


def test_the_reference_is_kept_with_the_figures():
    given = [{"model": "resnet50", "gpus": 4, "images_per_second": 1700, "source": "a paper"}]
    found = parse(Benchmark, collect([result(FOUND)], "b1", "2026-11-23T15:20:00Z", given)).reference
    assert [(one.model, one.arm, one.gpus, one.images_per_second, one.source) for one in found] == [
        ("resnet50", "plain", 4, 1700, "a paper")
    ]
