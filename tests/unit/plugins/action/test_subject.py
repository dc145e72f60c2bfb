# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure, decide, refuse, apply: which modules run on a node for a subject, and with what."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.action import subject
from ansible_collections.allreduce.gpu.plugins.action.subject import digest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects import BY_NAME, SUBJECTS
from ansible_collections.allreduce.gpu.tests.support.fake_node import act, documented_options

STEP = {"kind": "file", "subject": "/etc/nccl.conf"}
FACT = {"recorded": True, "variables": {}, "original": False, "interfaces": [], "foreign": []}
ASKED = {"nccl_conf_state": "present", "nccl_conf_variables": {"NCCL_IB_TC": 106}}
LINES = "# Declared in the inventory.\nNCCL_IB_TC=106\n"


class Node:
    """Answers as the modules would: the first measures, the second applies."""

    def __init__(self, applied=None, answer=None):
        self.applied, self.calls = applied, []
        self.answer = answer or {"changed": True, "changes": [STEP], "findings": [], "diff": [{"after": "x"}]}

    def state(self):
        return {}

    def execute(self, check, module_name, module_args, task_vars):
        assert set(module_args) <= documented_options(module_name)
        self.calls.append((module_name.rpartition(".")[2], dict(module_args)))
        if module_name.endswith("_facts"):
            return {"changed": False, "ansible_facts": {"gpu_nccl": FACT}, "applied": self.applied}
        return self.answer


def run(node, check=False, name="nccl", variables=None, **arguments):
    return act(subject, node, check=check, name=name, variables=ASKED if variables is None else variables, **arguments)


@pytest.mark.parametrize("check", [False, True])
def test_what_differs_is_applied_with_the_digest_of_its_options(check):
    node = Node()
    result = run(node, check)
    (measured, question), (applied, options) = node.calls
    assert (measured, question) == ("nccl_facts", {"user": "trainer"})
    assert applied == "tuning" and options["record"] == "nccl_conf"
    assert options["files"][0]["content"].endswith(LINES)
    assert options["applied"] == digest({name: value for name, value in options.items() if name != "applied"})
    assert (result["changed"], result["changes"], result["diff"]) == (True, [STEP], [{"after": "x"}])
    assert result["ansible_facts"] == {"gpu_nccl": FACT} and "invocation" not in result


@pytest.mark.parametrize("check", [False, True])
def test_what_holds_costs_no_execution_but_the_measurement(check):
    first = Node()
    run(first)
    node = Node(applied=first.calls[1][1]["applied"])
    result = run(node, check)
    assert [name for name, _options in node.calls] == ["nccl_facts"]
    assert (result["changed"], result["changes"], result["applies"]) == (False, [], True)


@pytest.mark.parametrize("measured", ["", digest({}), digest({"record": "nccl_conf", "files": []})])
def test_another_digest_does_not_hold(measured):
    node = Node(applied=measured)
    assert run(node)["changed"] and len(node.calls) == 2


def test_values_that_cannot_be_meant_are_refused_before_the_node_is_asked():
    node = Node()
    result = run(node, variables={**ASKED, "nccl_conf_variables": {"nccl_ib_tc": 1}})
    assert result["failed"] and node.calls == []
    assert result["msg"].startswith(
        "gpu-1 keeps its /etc/nccl.conf: nccl_conf_variables has nccl_ib_tc, which is not an"
    )


def test_facts_of_the_wrong_shape_are_told():
    from ansible.errors import AnsibleActionFail

    node = Node()
    node.execute = lambda *_arguments: {"ansible_facts": {"gpu_nccl": {"foreign": 1}}, "applied": None}
    with pytest.raises(AnsibleActionFail, match="nccl on gpu-1: "):
        run(node)


@pytest.mark.parametrize("state", ["absent", "disabled"])
def test_another_state_is_passed_on_and_nothing_is_measured(state):
    node = Node()
    run(node, state=state)
    assert node.calls == [("tuning", {"state": state, "record": "nccl_conf"})]


def test_further_options_reach_the_module_and_its_digest():
    node = Node()
    run(node, options={"profile": "x"})
    assert node.calls[1][1]["profile"] == "x"
    holding = Node(applied=node.calls[1][1]["applied"])
    run(holding, options={"profile": "y"})
    assert len(holding.calls) == 2


def test_a_failure_is_the_module_s():
    answer = {"failed": True, "msg": "no", "findings": [{"code": "not_set"}], "changes": [STEP], "changed": True}
    result = run(Node(answer=answer))
    assert result["failed"] and result["msg"] == "no" and result["findings"] == [{"code": "not_set"}]


def test_a_reboot_that_is_due_is_told():
    assert run(Node(answer={"changed": True, "changes": [STEP], "reboot": True, "findings": []}))["reboot"] is True


@pytest.mark.parametrize("name", ["cluster_ssh", "firewal"])
def test_only_subjects_that_a_module_applies(name):
    from ansible.errors import AnsibleError

    with pytest.raises(AnsibleError, match="must be one of"):
        run(Node(), name=name)


@pytest.mark.parametrize("one", [one for one in SUBJECTS if one.applied_by], ids=lambda one: one.name)
def test_a_subject_names_modules_and_options_that_exist(one):
    assert set(one.asked({}, "apply")) | set(one.asked({}, "verify")) <= documented_options(one.facts)
    assert set(one.options) <= documented_options(one.applied_by)
    assert "{host}" in one.refusal, "refusal names the host: {host}"
    assert one.switch in one.defaults and BY_NAME[one.name] is one


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}, True),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": None}, {}, False),
    ],
)
def test_a_digest_names_the_values(one, other, same):
    assert (digest(one) == digest(other)) is same
