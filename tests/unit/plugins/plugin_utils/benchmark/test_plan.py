# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.benchmark.plan import plan, sizes
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import ProblemError

NODES = ("gpu-1", "gpu-2", "gpu-3")


def planned(available=NODES, nodes="", playing=None, forks=5, nproc="auto", **more):
    return plan(
        list(available), nodes=nodes, playing=list(playing or available), forks=forks, nproc_per_node=nproc, **more
    )


@pytest.mark.parametrize(
    ("nodes", "found"),
    [(1, []), (2, [2]), (3, [2, 3]), (4, [2, 4]), (5, [2, 4, 5]), (8, [2, 4, 8]), (9, [2, 4, 8, 9])],
)
def test_nodes_that_run_together(nodes, found):
    assert sizes(nodes) == found


def test_every_node_runs_alone_then_one_gpu_then_more_and_more_nodes():
    assert [(one["name"], one["groups"], one["nproc_per_node"]) for one in planned()["runs"]] == [
        ("node", [["gpu-1"], ["gpu-2"], ["gpu-3"]], "auto"),
        ("gpu", [["gpu-1"]], "1"),
        ("nodes", [["gpu-1", "gpu-2"]], "auto"),
        ("nodes", [["gpu-1", "gpu-2", "gpu-3"]], "auto"),
    ]


def test_one_node_never_runs_together_with_others():
    assert [one["name"] for one in planned(["gpu-1"])["runs"]] == ["node", "gpu"]
    assert [one["name"] for one in planned(together=False)["runs"]] == ["node", "gpu"]


def test_only_a_node_alone_measures_everything():
    assert [one["args"] for one in planned(nodes=2)["runs"]] == [
        [], ["--at-most", "training"], ["--at-most", "collectives", "training"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"nodes": 4}, "training_count"),
        ({"nodes": "gpu-9"}, "training_unknown"),
        ({"playing": ["gpu-1"]}, "training_absent"),
        ({"forks": 2}, "too_few_forks"),
        ({"available": []}, "no_training_nodes"),
    ],
)
def test_what_cannot_run_is_refused(given, code):
    with pytest.raises(ProblemError) as caught:
        planned(**given)
    assert [one.code for one in caught.value.problems] == [code]
    assert caught.value.problems[0].detail.get("variable", "benchmark_nodes") == "benchmark_nodes"


GOOD = {"model": "resnet50", "gpus": 4, "images_per_second": 1700}


def test_a_reference_is_accepted():
    assert planned(reference=[GOOD, {**GOOD, "arm": "tuned", "source": "acceptance of May"}])["nodes"]


@pytest.mark.parametrize(
    ("reference", "subject", "value"),
    [
        ([GOOD, {**GOOD, "gpus": 0}], "benchmark_reference[1].gpus", 0),
        ([{**GOOD, "images_per_second": 0.0}], "benchmark_reference[0].images_per_second", 0.0),
        ([{**GOOD, "images_per_second": float("nan")}], "benchmark_reference[0].images_per_second", None),
        ([{**GOOD, "images_per_second": "fast"}], "benchmark_reference[0].images_per_second", "fast"),
        ([{"model": "resnet50", "gpus": 4}], "benchmark_reference[0].images_per_second", None),
        (["450"], "benchmark_reference[0]", "450"),
    ],
)
def test_a_reference_that_nothing_can_be_compared_with_is_refused(reference, subject, value):
    with pytest.raises(ProblemError) as caught:
        planned(reference=reference)
    [found] = caught.value.problems
    assert (found.code, found.subject) == ("wrong_reference", subject)
    assert found.detail["value"] == value or value is None
