# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The group of GPU nodes, the limit, addresses and tags."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.inventory import (
    group_problems,
    known_address_problems,
    tag_problems,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import Problem


@pytest.mark.parametrize(
    ("nodes", "playing", "limit", "problems"),
    [
        (["a", "b"], ["localhost", "a", "b"], None, []),
        (["a", "b"], ["b"], "b", []),
        ([], ["localhost"], None, [Problem("no_gpu_nodes", "gpu_nodes", {"sources": ["hosts.yml"]})]),
        ([], ["c"], "c", [Problem("no_gpu_nodes", "gpu_nodes", {"sources": ["hosts.yml"]})]),
        (["a"], ["login"], "login", [Problem("limit_without_gpu_nodes", "login", {"nodes": ["a"]})]),
        (["a"], ["localhost"], None, []),
    ],
)
def test_a_run_needs_a_gpu_node(nodes, playing, limit, problems):
    assert group_problems(nodes, playing, limit, ["hosts.yml"]) == problems


@pytest.mark.parametrize(
    ("nodes", "missing", "any_host", "codes"),
    [
        (["a"], ["/b.yml"], True, []),
        ([], ["/b.yml", "/c.yml"], False, ["no_inventory", "no_inventory"]),
        ([], ["/b.yml"], True, ["no_inventory"]),
        ([], [], True, ["no_gpu_nodes"]),
        ([], [], False, ["empty_inventory"]),
    ],
)
def test_an_inventory_without_gpu_nodes_says_what_is_wrong_with_it(nodes, missing, any_host, codes):
    assert [one.code for one in group_problems(nodes, nodes, None, ["/a.yml"], missing, any_host)] == codes


MEASURED = {"interfaces": ["lo"], "default_ipv4": {}}


@pytest.mark.parametrize(
    ("nodes", "codes"),
    [
        ({"a": {}, "b": {}}, []),
        ({"a": {"gpu_cluster_address": "10.0.0.1"}, "b": {}}, []),
        ({"a": {"ansible_facts": MEASURED}}, ["missing_address"]),
        ({"a": {"ansible_facts": {"distribution": "Debian"}}}, []),
        ({"a": {"ansible_facts": MEASURED, "gpu_cluster_address": "10.0.0.1"}}, []),
        ({"a": {"gpu_cluster_address": "gpu-1"}}, ["invalid_address"]),
        ({"a": {"gpu_cluster_address": "10.0.0.1"}, "b": {"gpu_cluster_address": "10.0.0.1"}}, ["shared_address"]),
        (
            {
                "a": {"gpu_cluster_address": "10.0.0.1"},
                "b": {"ansible_facts": {"default_ipv4": {"address": "10.0.0.1"}}},
            },
            ["shared_address"],
        ),
    ],
)
def test_an_address_is_judged_as_far_as_it_is_known(nodes, codes):
    assert [problem.code for problem in known_address_problems(nodes)] == codes


@pytest.mark.parametrize(
    ("requested", "wrong"),
    [
        (["all"], []),
        (["nccl"], []),
        (["tagged"], []),
        (["nosuch"], ["nosuch"]),
        (["nccl", "nosuch"], ["nosuch"]),
    ],
)
def test_a_tag_must_select_something(requested, wrong):
    available = ["nccl", "base", "always"]
    expected = [Problem("unknown_tag", tag, {"tags": ["base", "nccl"]}) for tag in wrong]
    assert tag_problems(requested, available) == expected


@pytest.mark.parametrize(("tag", "nearest"), [("ncll", "nccl"), ("nvidia-driver", "nvidia_driver")])
def test_a_misspelt_tag_names_the_nearest(tag, nearest):
    assert tag_problems([tag], ["nccl", "nvidia_driver"]) == [Problem("misspelt_tag", tag, {"nearest": nearest})]
