# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.benchmark.scaling import curves
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.benchmark import Benchmark
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse

from tests.support.benchmark import cluster, document, lacking, run, training


def found(*runs):
    return curves(parse(Benchmark, {**cluster({}), "runs": list(runs)}))


def grown(gpu=None, node=1700.0, two=3400.0):
    """The reference system S1: 450, 1700 and 3400 images/s on 1, 4 and 8 GPUs."""
    runs = [
        run("node", ["a"], document("a", [training(node, 4)], gpus=4)),
        run("node", ["b"], document("b", [training(1600.0, 4)], gpus=4)),
    ]
    runs += [run("gpu", ["a"], document("a", [training(gpu, 1)], gpus=1))] if gpu else []
    return [*runs, run("nodes", ["a", "b"], document("a", [training(two, 8)], gpus=4, nodes=2))]


def test_throughput_grows_from_one_gpu_over_a_node_to_all():
    [curve] = found(*grown(gpu=450.0))
    assert (curve.model, curve.arm) == ("resnet50", "tuned")
    assert [(one.nodes, one.ranks, one.images_per_second) for one in curve.points] == [
        (1, 1, 450.0),
        (1, 4, 1700.0),
        (2, 8, 3400.0),
    ]
    assert [one.speedup for one in curve.points] == pytest.approx([1.0, 3.7778, 7.5556], abs=1e-4)
    assert [one.efficiency for one in curve.points] == pytest.approx([1.0, 0.9444, 0.9444], abs=1e-4)


def test_without_a_run_on_one_gpu_the_smallest_is_the_measure():
    [curve] = found(*grown())
    assert [one.efficiency for one in curve.points] == [1.0, 1.0]


def test_one_node_has_a_curve_of_one_point():
    [curve] = found(run("node", ["a"], document("a", [training(450.0, 1)], gpus=1)))
    assert [(one.ranks, one.efficiency) for one in curve.points] == [(1, 1.0)]


def test_models_and_arms_have_a_curve_each_and_what_was_not_measured_none():
    measurements = [
        training(2.0, 1),
        training(1.0, 1, arm="plain"),
        training(3.0, 1, model="vit_b_16"),
        lacking("training", "no_gpu"),
    ]
    assert [(one.model, one.arm) for one in found(run("node", ["a"], document("a", measurements, gpus=1)))] == [
        ("resnet50", "tuned"), ("resnet50", "plain"), ("vit_b_16", "tuned"),
    ]  # fmt: skip


def test_without_runs_there_is_no_curve():
    assert found() == ()
