# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node may call itself: what real clusters need, and nobody else's name."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.names import Names, is_own_name
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe

INVENTORY = {
    "gpu-1": {"ansible_host": "10.0.0.1"},
    "gpu-2": {"ansible_host": "node2.rack.example.org"},
    "gpu-3.example.org": {"cluster_ssh_domains": ["ec2.internal", ".corp.example.com"]},
    "10.0.0.4": {},
    "ctl": {},
}


def code(node, name, **variables):
    known = {**INVENTORY, node: {**INVENTORY[node], **variables}}
    said = {**known[node], "ansible_facts": {"nodename": name, "default_ipv4": {"address": "10.0.0.9"}}}
    problem = Names.of(known).problem(node, said)
    if problem:
        assert problem.subject == node and node in describe(problem)
    return problem and problem.code


@pytest.mark.parametrize(
    ("node", "name"),
    [
        ("gpu-1", "gpu-1"),
        ("gpu-1", "GPU-1"),
        ("gpu-1", "gpu-1.anything.example.net"),  # an alias, and Enterprise Linux with the whole name
        ("gpu-1", "dgx-a100-07"),
        ("gpu-1", "ip-10-0-0-9"),
        ("gpu-1", "ip-10-0-0-9.eu-west-1.compute.internal"),
        ("gpu-1", "ip-10-0-0-1.eu-west-1.compute.internal"),
        ("gpu-1", "dgx.example.org"),
        ("gpu-1", "dgx.ec2.internal"),
        ("gpu-1", "dgx.corp.example.com"),
        ("gpu-2", "node2.rack.example.org"),
        ("gpu-2", "node2"),
        ("gpu-2", "gpu-2.local"),
        ("10.0.0.4", "gpu-4"),
        ("10.0.0.4", "gpu-4.example.org"),
        ("gpu-1", "localhost.localdomain"),
        ("gpu-1", "(none)"),
        ("gpu-1", None),
        ("gpu-1", ""),
    ],
)
def test_a_node_may_call_itself(node, name):
    assert code(node, name) is None


@pytest.mark.parametrize(
    ("node", "name", "expected"),
    [
        ("gpu-1", "gpu-2", "name_of_another"),
        ("gpu-1", "Gpu-2.example.org", "name_of_another"),
        ("gpu-1", "node2.rack.example.org", "name_of_another"),
        ("gpu-1", "node2", "name_of_another"),
        ("gpu-1", "gpu-3", "name_of_another"),
        ("gpu-1", "gpu-3.example.org", "name_of_another"),
        ("gpu-1", "ctl", "name_of_another"),
        ("gpu-1", "pypi.org", "foreign_domain"),
        ("gpu-1", "gpu-2.example.net", "foreign_domain"),
        ("gpu-1", "ip-10-0-0-2.eu-west-1.compute.internal", "foreign_domain"),
        ("10.0.0.4", "gpu-4.example.net", "foreign_domain"),
        ("gpu-1", "gpu-1\n10.0.0.9 pypi.org", "unfit_answer"),
        ("gpu-1", "gpu-1.", "unfit_answer"),
        ("gpu-1", "x,*", "unfit_answer"),
        ("gpu-1", "10.0.0.1", "unfit_answer"),
    ],
)
def test_a_node_may_not_call_itself(node, name, expected):
    assert code(node, name) == expected


def test_a_user_can_allow_a_domain():
    assert code("gpu-1", "dgx.example.net") == "foreign_domain"
    assert code("gpu-1", "dgx.example.net", cluster_ssh_domains=["example.net"]) is None


@pytest.mark.parametrize(
    "name", ["localhost", "ip6-localhost", "localhost6.localdomain6", "ip6-allnodes", "(none)", ""]
)
def test_names_of_every_host_are_nobodys(name):
    assert not is_own_name(name)
