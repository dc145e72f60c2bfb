# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.filter._imex_nodes import FilterModule

imex_nodes = FilterModule().filters()["_imex_nodes"]


def node(number, domain):
    return {
        "ansible_facts": {"default_ipv4": {"address": f"10.0.0.{number}"}, "gpu_node": {"fabric": {"domain": domain}}}
    }


HOSTVARS = {
    "a": node(1, "rack.1"),
    "b": {**node(2, "rack.1"), "gpu_cluster_address": "192.168.0.2"},
    "c": node(3, "rack.2"),
    "d": node(4, None),
    "e": {},
    "f": {"ansible_facts": {"gpu_node": {"fabric": {"domain": "rack.1"}}}},
}


@pytest.mark.parametrize(
    ("names", "addresses"),
    [
        ("abcdef", {"rack.1": ["10.0.0.1", "192.168.0.2"], "rack.2": ["10.0.0.3"]}),
        ("ba", {"rack.1": ["192.168.0.2", "10.0.0.1"]}),
        ("def", {}),
        ("", {}),
    ],
)
def test_nodes_of_each_fabric(names, addresses):
    assert imex_nodes(list(names), HOSTVARS) == addresses
