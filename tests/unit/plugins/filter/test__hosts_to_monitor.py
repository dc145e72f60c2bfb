# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.filter._hosts_to_monitor import FilterModule

to_monitor = FilterModule().filters()["_hosts_to_monitor"]
GROUPS = {"all": ["a", "b", "c", "x"], "gpu_nodes": ["a", "b"], "controllers": ["c", "b"]}
NOBODY = ["all:!all"]


def measured(recorded):
    return {"ansible_facts": {"gpu_node_state": {"records": ["monitoring"] if recorded else []}}}


@pytest.mark.parametrize(
    ("hostvars", "state", "hosts"),
    [
        ({}, "absent", NOBODY),
        ({"a": measured(False), "b": measured(False)}, "absent", NOBODY),
        ({"a": measured(True), "b": measured(False)}, "absent", ["a", "c"]),  # what c has of it, nobody has measured
        ({"a": {"monitoring_state": "present"}}, "absent", ["a"]),
        ({"x": {"monitoring_state": "present"}}, "absent", NOBODY),
        ({}, "present", ["a", "b", "c"]),
        ({"a": {"ansible_facts": {"gpu_stack": {"dcgm": {"version": "4.6.1"}}}}}, "absent", ["a"]),
        ({"a": {"ansible_facts": {"gpu_stack": {"dcgm": None}}}}, "absent", NOBODY),
        ({"a": {"monitoring_state": "absent"}}, "present", ["a", "b", "c"]),  # the role decides
    ],
)
def test_hosts_without_monitoring_are_left_out(hostvars, state, hosts):
    everyone = {name: hostvars.get(name, {}) for name in GROUPS["all"]}
    assert to_monitor(GROUPS, everyone, state) == hosts


def test_a_check_of_the_syntax_knows_no_host():
    assert to_monitor({}, {}) == NOBODY
