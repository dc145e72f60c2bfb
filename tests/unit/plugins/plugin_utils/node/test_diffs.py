# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.node.diffs import difference, merge

A, B = ["a"], ["b"]


@pytest.mark.parametrize(
    ("steps", "merged"),
    [
        ([difference("f", A, B)], [difference("f", A, B)]),
        ([difference("f", A, []), difference("f", [], B)], [difference("f", A, B)]),
        ([difference("f", A, []), difference("f", [], A)], []),
        ([difference("f", A, B), difference("g", [], B)], [difference("f", A, B), difference("g", [], B)]),
        ([{"prepared": "text"}], [{"prepared": "text"}]),
        ([], []),
    ],
)
def test_merge(steps, merged):
    assert merge(steps) == merged
