# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names and addresses by which measured nodes can be told apart."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.hosts import cluster_problems
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import Problem
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe_all


def node(name, address="10.0.0.9", **variables):
    return {"ansible_facts": {"nodename": name, "default_ipv4": {"address": address} if address else {}}, **variables}


OTHER = node("gpu-9.example.org", "10.0.0.8")
CASES = {
    "names and addresses of their own": ({"a": node("gpu-1"), "b": OTHER}, []),
    "localhost": ({"a": node("localhost"), "b": OTHER}, [("no_host_name", "localhost", ["a"])]),
    "two of the installer's name": (
        {"a": node("localhost.localdomain"), "b": OTHER, "c": node("localhost.localdomain", "10.0.0.7")},
        [("no_host_name", "localhost.localdomain", ["a", "c"])],
    ),
    "the kernel's": ({"a": node("(none)"), "b": OTHER}, [("no_host_name", "(none)", ["a"])]),
    "equal names": ({"a": node("GPU-9.example.org"), "b": OTHER}, [("shared_host_name", "gpu-9.example.org", ["a", "b"])]),
    "equal names in other domains": ({"a": node("gpu-9.example.com"), "b": OTHER}, []),
    "no default route": ({"a": node("gpu-1", None), "b": OTHER}, [("missing_address", "gpu_cluster_address", ["a"])]),
    "an address in the inventory": ({"a": node("gpu-1", None, gpu_cluster_address="10.1.0.1"), "b": OTHER}, []),
    "equal addresses": ({"a": node("gpu-1", "10.0.0.8"), "b": OTHER}, [("shared_address", "10.0.0.8", ["a", "b"])]),
    "a name and an address": (
        {"a": node("localhost", None), "b": OTHER},
        [("no_host_name", "localhost", ["a"]), ("missing_address", "gpu_cluster_address", ["a"])],
    ),
    "not measured": ({"a": {"ansible_facts": {}}, "b": {}, "c": OTHER}, []),
    "alone": ({"a": node("localhost", None)}, []),
}  # fmt: skip


@pytest.mark.parametrize(("hosts", "problems"), CASES.values(), ids=CASES)
def test_measured_nodes_can_be_told_apart(hosts, problems):
    assert cluster_problems(hosts) == [Problem(code, subject, {"nodes": nodes}) for code, subject, nodes in problems]


def test_it_is_said_in_a_sentence():
    said = describe_all(cluster_problems({"a": node("localhost"), "b": OTHER}))
    assert said == (
        "The host name of a is 'localhost', the default of a host without a name; give each a name of its own with "
        "'hostnamectl set-hostname'."
    )
