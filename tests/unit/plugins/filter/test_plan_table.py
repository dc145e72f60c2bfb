# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The adapters of playbook plan: table, room, reachable hosts, lock."""

from __future__ import annotations

from ansible_collections.allreduce.gpu.plugins.filter import disk_shortage, plan_table, plannable_hosts, stack_lock
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.lock import read
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

STACK = resolve({"os": "debian 12"})["stack"]
HOSTVARS = {
    "up": {"ansible_facts": {"gpu_stack": STACK}},
    "lost": {"__stack_reached": {"unreachable": True}},
    "described": {"__stack_reached": {"unreachable": True}, "gpu_stack_host": {"os": "debian 12"}},
}


def filters(module):
    return module.FilterModule().filters()


def test_plan_table():
    assert "up" in filters(plan_table)["plan_table"](["up"], HOSTVARS)[0]


def test_disk_shortage():
    assert filters(disk_shortage)["disk_shortage"](STACK, {"disk_free_mib": {"/": 1}})


def test_plannable_hosts():
    assert filters(plannable_hosts)["plannable_hosts"](list(HOSTVARS), HOSTVARS) == ["up", "described"]


def test_stack_lock(tmp_path):
    path = tmp_path / "stack.lock.yml"
    path.write_text(filters(stack_lock)["stack_lock"](["up"], HOSTVARS, str(path)), encoding="utf-8")
    assert read(str(path))[0]["stack"]["kind"] == STACK["kind"]
