# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One notion of a node's cluster address, and of what is wrong with one."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.address import address_problems, cluster_address
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import Problem

FACTS = {"default_ipv4": {"address": "10.0.0.1"}}


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({"ansible_facts": FACTS}, "10.0.0.1"),
        ({"ansible_facts": FACTS, "gpu_cluster_address": "192.168.1.5"}, "192.168.1.5"),
        ({"ansible_facts": FACTS, "gpu_cluster_address": ""}, "10.0.0.1"),
        ({"gpu_cluster_address": "FD00:0::1"}, "fd00::1"),
        ({"gpu_cluster_address": "node-a"}, "node-a"),
        ({"ansible_facts": {"default_ipv4": {}}}, None),
        ({"ansible_facts": None}, None),
        ({}, None),
    ],
)
def test_the_inventory_wins_over_the_default_route(variables, address):
    assert cluster_address(variables) == address


@pytest.mark.parametrize(
    ("addresses", "problems"),
    [
        ({"a": "10.0.0.1", "b": "fd00::1"}, []),
        ({"a": None, "b": "10.0.0.1", "c": ""}, [Problem("missing_address", "gpu_cluster_address", {"nodes": ["a", "c"]})]),
        ({"a": "node-a"}, [Problem("invalid_address", "a", {"address": "node-a"})]),
        ({"a": "10.0.0.1/24"}, [Problem("invalid_address", "a", {"address": "10.0.0.1/24"})]),
        # Alone, a node may meet itself.
        ({"a": "127.0.0.1"}, []),
        ({"a": "127.0.0.1", "b": "10.0.0.1"}, [Problem("loopback_address", "a", {"address": "127.0.0.1"})]),
        ({"a": "10.0.0.1", "b": "::1"}, [Problem("loopback_address", "b", {"address": "::1"})]),
        ({"a": "fd00::1", "b": "FD00:0::1"}, [Problem("shared_address", "fd00::1", {"nodes": ["a", "b"]})]),
    ],
)  # fmt: skip
def test_an_address_is_there_valid_and_not_shared(addresses, problems):
    assert address_problems(addresses) == problems
