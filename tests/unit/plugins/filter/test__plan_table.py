# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The adapters of playbook plan: who is lost, the plan, its table, its lock."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.allreduce.gpu.plugins.filter import (
    _cluster_plan as cluster_plan,
)
from ansible_collections.allreduce.gpu.plugins.filter import (
    _lost_hosts as lost_hosts,
)
from ansible_collections.allreduce.gpu.plugins.filter import (
    _plan_table as plan_table,
)
from ansible_collections.allreduce.gpu.plugins.filter import (
    _stack_lock as stack_lock,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.lock import read

HOSTVARS = {
    "up": {},
    "lost": {"__stack_reached": {"unreachable": True}},
    "described": {"gpu_stack_host": {"os": "debian 12"}},
}


def apply(module, name, value, *arguments):
    return module.FilterModule().filters()[f"_{name}"](value, *arguments)


def planned(*hosts):
    return apply(cluster_plan, "cluster_plan", hosts, HOSTVARS)


def test_cluster_plan():
    assert planned("described")["stacks"][0]["hosts"] == ["described"]
    assert planned("up")["refused"][0]["hosts"] == ["up"]


def test_a_request_of_the_wrong_kind_is_an_error_of_the_filter():
    with pytest.raises(AnsibleFilterError, match="set it to a dictionary"):
        apply(cluster_plan, "cluster_plan", ["up"], {"up": {"gpu_stack_request": "535"}})


def test_plan_table():
    assert "described" in apply(plan_table, "plan_table", planned("described"))[0]


def test_lost_hosts():
    (sentence,) = apply(lost_hosts, "lost_hosts", list(HOSTVARS), HOSTVARS)
    assert sentence.startswith("1 of 3 nodes cannot be reached, so nothing was touched: lost; check power")


def test_stack_lock(tmp_path):
    path, plan = tmp_path / "stack.lock.yml", planned("described")
    path.write_text(apply(stack_lock, "stack_lock", plan, str(path)), encoding="utf-8")
    assert read(str(path))[0]["stack"]["kind"] == plan["stacks"][0]["stack"]["kind"]
