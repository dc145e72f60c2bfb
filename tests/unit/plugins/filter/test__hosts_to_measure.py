# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.filter._hosts_to_measure import FilterModule

HOST = {"gpu_stack_host": {"os": "debian 12"}}
HOSTVARS = {"a": HOST, "b": {}, "c": {**HOST, "plan_measure": True}, "d": {**HOST, "plan_measure": "no"}}
to_measure = FilterModule().filters()["_hosts_to_measure"]


@pytest.mark.parametrize(
    ("hosts", "everyone", "measured"),
    [
        ("abcd", False, ["b", "c"]),
        ("abcd", "false", ["b", "c"]),
        ("abcd", True, ["a", "b", "c", "d"]),
        ("abcd", "true", ["a", "b", "c", "d"]),
        ("ad", False, ["all:!all"]),
        ("", True, ["all:!all"]),
        ("x", False, ["x"]),
    ],
)
def test_described_hosts_are_measured_only_when_asked_for(hosts, everyone, measured):
    assert to_measure(list(hosts), HOSTVARS, everyone) == measured
