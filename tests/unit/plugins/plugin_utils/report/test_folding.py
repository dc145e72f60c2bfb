# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import folding


def test_equal_nodes_are_one_kind(large_report):
    kinds = folding.kinds(large_report)

    assert [(kind.label, len(kind.nodes), kind.differences) for kind in kinds] == [
        ("gpu-7", 1, 1),
        ("gpu-[1-6,8-1000]", 999, 0),
    ]


def test_equal_outcomes_stand_once(report):
    outcomes = folding.attention(report)

    assert [(one.check.name, one.check.status, one.nodes) for one in outcomes] == [
        ("driver_version", "failed", ("gpu-2",)),
        ("fabric_manager", "unknown", ("gpu-2",)),
    ]


def test_the_worst_group_stands_first(large_report):
    groups = folding.check_groups(large_report)

    assert groups[0].nodes == ("gpu-7",)
    assert groups[0].categories[0][0] == "coherence"
    assert list(groups[0].counts) == ["failed", "skipped", "passed"]


def test_no_check_is_lost(large_report):
    grouped = sum(len(group.nodes) * len(group.checks) for group in folding.check_groups(large_report))
    counted = sum(sum(found.values()) for _category, found in folding.by_category(large_report))

    assert grouped == counted == len(large_report.checks) == 10002


def test_a_label_of_unrelated_names_says_how_many():
    names = [f"{chr(97 + number % 26)}{number}x" for number in range(100)]

    assert folding.label(names) == "a0x, a26x and 98 other nodes"
