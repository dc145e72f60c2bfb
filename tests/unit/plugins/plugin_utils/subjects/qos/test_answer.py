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
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.subject import Node

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
        ({"qos_interfaces": "eth7"}, {"gpu_qos": FACT}, [Status.UNKNOWN]),
    ],
)
def test_comparisons(variables, facts, statuses):
    hosts = {**HOSTS, "a": {**HOSTS["a"], **variables}}
    assert [one.status for one in compare_node(SUBJECT, "a", hosts, GROUPS, facts)] == statuses


def test_a_fact_of_the_wrong_shape_is_refused():
    for judge in (decide_node, compare_node):
        with pytest.raises(DocumentError, match=r"^gpu_qos\.interfaces"):
            judge(SUBJECT, "a", HOSTS, GROUPS, {"gpu_qos": {"interfaces": []}})


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


@pytest.mark.parametrize(("nft", "packages"), [(True, []), (False, ["nftables"])])
def test_the_classifier_is_installed_first(nft, packages):
    found = decide_node(SUBJECT, "a", HOSTS, GROUPS, {"gpu_qos": {**FACT, "nft": nft}})
    assert (found["packages"], found["problems"]) == (packages, [])


def test_the_unit_comes_with_the_shares():
    boot = [{"path": "/etc/systemd/system/x.service", "content": "x"}]
    assert boot[0] in decide_node(SUBJECT, "a", HOSTS, GROUPS, {"gpu_qos": FACT}, boot)["plan"]["files"]


def test_a_node_alone_and_outside_every_group():
    hosts = {"a": HOSTS["a"]}
    assert decide_node(SUBJECT, "a", hosts, {}, {"gpu_qos": FACT})["plan"]
    assert {one.status for one in compare_node(SUBJECT, "a", hosts, {}, {"gpu_qos": FACT})} == {Status.MISSING}


def test_an_unknown_state_is_not_judged_as_present():
    assert compare_node(SUBJECT, "a", {"a": {}}, GROUPS, {"gpu_qos": FACT}) == []


def test_rules_that_run_are_those_of_the_request():
    plan = decide_node(SUBJECT, "a", HOSTS, GROUPS, {"gpu_qos": FACT})["plan"]
    found = compare_node(SUBJECT, "a", HOSTS, GROUPS, {"gpu_qos": {**FACT, "table": plan["digest"]}})
    assert found[0].status is Status.AS_PLANNED
    fewer = {name: HOSTS[name] for name in "a"}
    found = compare_node(SUBJECT, "a", fewer, GROUPS, {"gpu_qos": {**FACT, "table": plan["digest"]}})
    assert found[0].status is Status.DIFFERS


@pytest.mark.parametrize(("state", "codes"), [("present", ["qos_lacks_interface"]), ("absent", []), (None, [])])
def test_interfaces_are_missed_where_shares_are_wanted(state, codes):
    node = Node("a", {"qos_state": state, "qos_interfaces": ["eth7"]}, {"interfaces": ["eth0"]})
    assert [(one.code) for one in SUBJECT.misfits(node)] == codes
    assert all(one.detail == {"nodes": ["a"], "interfaces": ["eth0"]} for one in SUBJECT.misfits(node))
