# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter._benchmark_request import FilterModule

plan = FilterModule().filters()["_benchmark_request"]


def test_the_filter_plans_a_benchmark():
    found = plan(["gpu-1"], playing=["gpu-1"], forks="5")
    assert (found["nodes"], [one["name"] for one in found["runs"]], found["refusal"]) == (
        ["gpu-1"],
        ["node", "gpu"],
        None,
    )


def test_a_refusal_is_one_sentence_with_an_empty_request():
    assert plan(["gpu-1"], nodes=2, playing=["gpu-1"], forks=5) == {
        "nodes": [],
        "runs": [],
        "refusal": "benchmark_nodes is 2, but group gpu_nodes has 1 hosts; set a number from 1 to 1, or names.",
    }


def test_a_wrong_reference_is_refused_before_anything_runs():
    found = plan(
        ["gpu-1"], playing=["gpu-1"], forks=5, reference=[{"model": "vit_b_16", "gpus": 0, "images_per_second": 320}]
    )
    assert found["refusal"] == "benchmark_reference[0].gpus is 0; set it to a number of at least 1."
