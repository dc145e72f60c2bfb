# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adapters of one board have one firmware in the whole cluster."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.cluster_adapters import checks


def node(*versions, board="MT_0000000223"):
    return {
        "nics": [
            {"name": f"mlx5_{number}", "board_id": board, "firmware_version": one}
            for number, one in enumerate(versions)
        ]
    }


def told(**nodes):
    (found,) = checks(nodes)
    return found["status"], found["reason"]


def test_one_version_everywhere():
    assert told(a=node("20.31", "20.31"), b=node("20.31")) == ("passed", "")


def test_who_differs_from_most_is_named():
    status, reason = told(a=node("20.31", "20.31"), b=node("20.31", "20.28"))
    assert status == "failed" and reason == "most of MT_0000000223 have 20.31, but mlx5_1 of b has 20.28"


def test_without_a_majority_nobody_is_blamed():
    status, reason = told(a=node("20.31"), b=node("20.28"))
    assert status == "failed" and "none of them" in reason


def test_boards_of_different_kinds_are_not_compared():
    assert told(a=node("20.31"), b=node("28.40", board="MT_0000000838"))[0] == "passed"


@pytest.mark.parametrize("other", [node(), node(None), node("20.31", board=None), {}])
def test_what_is_not_known_is_not_compared(other):
    assert not list(checks({"a": node("20.31"), "b": other}))
