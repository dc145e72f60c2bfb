# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a module that applies settings is sent, and what it is given."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.action import firewall, qos, rdma, tuning
from ansible_collections.allreduce.gpu.plugins.plugin_utils.node.settings import digest
from ansible_collections.allreduce.gpu.tests.support.fake_node import act, documented_options

ACTIONS = {"firewall": firewall, "qos": qos, "rdma": rdma, "tuning": tuning}
FILES = [{"path": "/etc/x.conf", "content": "a = 1\n"}]
STEP = {"kind": "file", "subject": "/etc/x.conf"}


class Node:
    """Answers as the module would."""

    def __init__(self, answer=None):
        self.answer, self.calls = answer or {"changed": False, "changes": [], "findings": [], "diff": []}, []

    def state(self):
        return {}

    def execute(self, check, module_name, module_args, task_vars):
        assert set(module_args) <= documented_options(module_name)
        self.calls.append((module_name, dict(module_args)))
        return self.answer


@pytest.fixture(params=sorted(ACTIONS))
def name(request):
    return request.param


@pytest.mark.parametrize("check", [False, True])
def test_what_holds_costs_no_execution(name, check):
    node = Node()
    result = act(ACTIONS[name], node, check=check, files=FILES, applied=digest({"files": FILES}))
    assert (result["changed"], result["changes"], node.calls) == (False, [], [])


@pytest.mark.parametrize("measured", [None, "", digest({"files": []}), digest({"files": FILES, "state": "absent"})])
def test_otherwise_the_module_is_sent_with_the_digest_of_its_options(name, measured):
    node = Node({"changed": True, "changes": [STEP], "findings": [], "diff": [{"after": "x"}], "invocation": {}})
    result = act(ACTIONS[name], node, files=FILES, applied=measured)
    assert node.calls == [(f"allreduce.gpu.{name}", {"files": FILES, "applied": digest({"files": FILES})})]
    assert (result["changed"], result["changes"], result["diff"]) == (True, [STEP], [{"after": "x"}])
    assert "invocation" not in result


def test_a_failure_is_the_module_s(name):
    answer = {"failed": True, "msg": "no", "findings": [{"code": "not_set"}], "changes": [STEP], "changed": True}
    result = act(ACTIONS[name], Node(answer), files=FILES)
    assert result["failed"] and result["msg"] == "no" and result["findings"] == [{"code": "not_set"}]


def test_a_reboot_that_is_due_is_told():
    result = act(tuning, Node({"changed": True, "changes": [STEP], "reboot": True, "findings": []}), files=FILES)
    assert result["reboot"] is True


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
