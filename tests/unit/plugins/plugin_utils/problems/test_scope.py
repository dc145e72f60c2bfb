# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a variable is set, in as few words as possible."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.scope import PLAY, Scope, scope_of

GROUPS = {"all": ["a", "b", "c"], "gpu_nodes": ["a", "b"], "ungrouped": ["c", "b"]}


@pytest.mark.parametrize(
    ("hosts", "scope"),
    [
        ([], PLAY),
        (["b", "a"], Scope("group", ("gpu_nodes",))),
        (["a", "b", "c"], Scope("group", ("all",))),
        (["a"], Scope("hosts", ("a",))),
        (["c", "b"], Scope("hosts", ("b", "c"))),
    ],
)
def test_a_group_of_exactly_these_hosts_says_more_than_their_names(hosts, scope):
    assert scope_of(hosts, GROUPS) == scope


def test_a_group_the_user_named_says_more_than_all():
    assert scope_of(["a", "b"], {"all": ["a", "b"], "gpu_nodes": ["a", "b"]}) == Scope("group", ("gpu_nodes",))
