# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables and facts in, what the role and the verification need out."""

import json
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.door import told
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.answer import SUBJECT, questions
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.request import READS_OF_OTHERS

from tests.support.subjects import compare_node, decide_node

FACT = {
    "tc": True, "nft": True, "table": None, "kernel": {"htb": True},
    "interfaces": {"eth0": {"addresses": ["10.0.0.1"], "speed": 10000, "shaped": {"root": None}}},
}  # fmt: skip
HOSTS = {
    "a": {"gpu_cluster_address": "10.0.0.1", "qos_state": "present"},
    "b": {"gpu_cluster_address": "10.0.0.2"},
}
GROUPS = {"gpu_nodes": ["a", "b"]}


def test_what_has_to_be_known():
    assert questions({}) == {"cgroups": []}
    assert questions({"qos_cgroups": "/training.slice,x"}) == {"cgroups": ["training.slice", "x"]}


def test_the_answer_is_plain():
    found = json.loads(json.dumps(decide_node(SUBJECT, "a", HOSTS, GROUPS, {"gpu_qos": FACT})))
    assert found["problems"] == []
    assert "10.0.0.2" in found["plan"]["table"] and found["plan"]["interfaces"][0]["name"] == "eth0"


def test_the_reference_system_gets_its_share():
    """S3, on the interface that its nodes have."""
    path = Path(__file__).resolve().parents[6] / "inventories" / "multi-gpu-workstation" / "hosts.yml"
    variables = yaml.safe_load(path.read_text("utf-8"))["gpu_nodes"]["vars"]
    hosts = {name: {**variables, **own} for name, own in HOSTS.items()}
    found = decide_node(SUBJECT, "a", hosts, GROUPS, {"gpu_qos": FACT})
    assert found["problems"] == []
    assert [(one["rate"], one["ceil"]) for one in found["plan"]["interfaces"][0]["classes"]] == [
        (8 * 10**9, 10**10),
        (2 * 10**9, 10**10),
    ]
    assert {one.status for one in compare_node(SUBJECT, "a", hosts, GROUPS, {"gpu_qos": FACT})} == {Status.MISSING}


@pytest.mark.parametrize(
    ("variables", "facts", "sentence"),
    [
        ({"qos_rate": "10"}, {"gpu_qos": {**FACT, "tc": False}}, "This node has no tc"),
        ({"qos_rate": "much"}, {}, "qos_rate is 'much'; write a rate as tc takes it"),
    ],
)
def test_why_not_is_told_in_sentences(variables, facts, sentence):
    found = decide_node(SUBJECT, "a", {**HOSTS, "a": {**HOSTS["a"], **variables}}, GROUPS, facts)
    assert found["plan"] is None and found["problems"][0].startswith(sentence)


@pytest.mark.parametrize(
    ("variables", "facts", "statuses"),
    [
        ({"qos_state": "absent"}, {}, []),
        ({"qos_state": "absent"}, {"gpu_node_state": {"records": ["qos"]}}, [Status.UNWANTED]),
        ({}, {}, [Status.UNKNOWN]),
        ({"qos_rate": "much"}, {"gpu_qos": FACT}, [Status.UNKNOWN]),
        ({}, {"gpu_qos": FACT}, [Status.MISSING] * 4),
        ({"qos_rate": "100gbit"}, {"gpu_qos": FACT}, [Status.UNKNOWN]),
    ],
)
def test_comparisons(variables, facts, statuses):
    hosts = {**HOSTS, "a": {**HOSTS["a"], **variables}}
    assert [one.status for one in compare_node(SUBJECT, "a", hosts, GROUPS, facts)] == statuses


def test_a_fact_of_the_wrong_shape_is_refused():
    with pytest.raises(DocumentError, match=r"gpu_qos\.interfaces"):
        decide_node(SUBJECT, "a", HOSTS, GROUPS, {"gpu_qos": {"interfaces": []}})


@pytest.mark.parametrize(
    "other",
    [{"gpu_cluster_address": "10.0.0.2"}, {"ansible_facts": {"default_ipv4": {"address": "10.0.0.3"}}}],
)
def test_what_is_read_of_other_nodes_is_what_the_answer_needs(other):
    hosts = {**HOSTS, "b": {**other, "qos_rate": "much"}}
    known = {**told(hosts, hosts, READS_OF_OTHERS).values, "a": hosts["a"]}
    found = decide_node(SUBJECT, "a", known, GROUPS, {"gpu_qos": FACT})
    assert found == decide_node(SUBJECT, "a", hosts, GROUPS, {"gpu_qos": FACT}) and found["plan"]
    assert decide_node(SUBJECT, "a", {**known, "b": {}}, GROUPS, {"gpu_qos": FACT}) != found
