# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.filter._hosts_of_slurm import FilterModule

hosts_of_slurm = FilterModule().filters()["_hosts_of_slurm"]
GROUPS = {"all": ["a", "b", "c", "d", "x"], "gpu_nodes": ["a", "b"], "controllers": ["c", "b"], "login_nodes": ["d"]}
NOBODY = ["all:!all"]


@pytest.mark.parametrize(
    ("hostvars", "hosts"),
    [
        ({}, NOBODY),
        (dict.fromkeys("abcdx", {"slurm_state": "external"}), ["a", "b", "c", "d"]),
        ({"c": {"slurm_state": "absent"}}, ["c"]),  # what it has, nobody has measured
        ({"x": {"slurm_state": "external"}}, NOBODY),
    ],
)
def test_hosts_without_a_word_of_slurm_are_left_out(hostvars, hosts):
    assert hosts_of_slurm(GROUPS, {name: hostvars.get(name, {}) for name in GROUPS["all"]}) == hosts


def test_a_check_of_the_syntax_knows_no_host():
    assert hosts_of_slurm({}, {}) == NOBODY
