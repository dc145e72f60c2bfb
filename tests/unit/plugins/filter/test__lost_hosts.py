# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter._lost_hosts import FilterModule

HOSTVARS = {
    "up": {},
    "lost": {"__stack_reached": {"unreachable": True}},
    "described": {"gpu_stack_host": {"os": "debian 12"}},
}


def test_lost_hosts():
    problem, advice = FilterModule().filters()["_lost_hosts"](list(HOSTVARS), HOSTVARS)
    assert problem["what"] == "1 of 3 nodes cannot be reached, so nothing was touched: lost"
    assert problem["fix"].startswith("check power")
    assert advice["fix"] == "run the command again with --limit '!lost' to go on with them alone"
    limited = FilterModule().filters()["_lost_hosts"](list(HOSTVARS), HOSTVARS, "rack1")[1]
    assert "--limit 'rack1:!lost'" in limited["fix"]


def test_where_one_host_is_enough_nothing_is_said_until_none_answers():
    lost_hosts = FilterModule().filters()["_lost_hosts"]
    assert lost_hosts(list(HOSTVARS), HOSTVARS, needs_all=False) == []
    (problem,) = lost_hosts(["lost"], HOSTVARS, needs_all=False)
    assert problem["what"] == "1 of 1 nodes cannot be reached, so nothing was touched: lost"
