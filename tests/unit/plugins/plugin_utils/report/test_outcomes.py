# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import outcomes
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.folding import Said
from ansible_collections.allreduce.gpu.tests.report import cluster


def test_equal_outcomes_stand_once(report):
    found = outcomes.attention(report)

    assert [(one.check.name, one.check.status, one.nodes) for one in found] == [
        ("driver_version", "failed", ("gpu-2",)),
        ("fabric_manager", "unknown", ("gpu-2",)),
    ]


def test_the_worst_group_stands_first(large_report):
    groups = outcomes.check_groups(large_report)

    assert groups[0].nodes == ("gpu-7",)
    assert groups[0].categories[0][0] == "coherence"
    assert list(groups[0].counts) == ["failed", "skipped", "passed"]


def test_no_check_is_lost(large_report):
    grouped = sum(len(group.nodes) * len(group.outcomes) for group in outcomes.check_groups(large_report))
    counted = sum(sum(found.values()) for _category, found in outcomes.by_category(large_report))

    assert grouped == counted == len(large_report.checks) == 10002


def test_nodes_whose_checks_measured_something_else_are_equal(large_report):
    """Each of the thousand has a bandwidth of its own."""
    groups = outcomes.check_groups(large_report)

    assert [len(group.nodes) for group in groups] == [1, 999, 1]
    (bandwidth,) = [one for one in groups[1].outcomes if one.check.name == "bus_bandwidth"]
    assert len(bandwidth.measured) == 999
    assert bandwidth.expected == (Said("at least 20 GB/s", bandwidth.nodes),)


def test_failures_with_other_reasons_are_apart_and_with_other_figures_together():
    verification = cluster.verification()
    nodes = {name: cluster.node(name, "10.0.0.1") for name in ("gpu-1", "gpu-2", "gpu-3")}
    for (name, node), reason in zip(nodes.items(), ("hot", "hot", "hotter"), strict=True):
        node["checks"][2].update(status="failed", measured=f"{name} has 1", reason=reason)
    report = cluster.build_report(verification | {"nodes": nodes}, [], "A")
    found = outcomes.attention(report)

    assert [(one.nodes, [said.text for said in one.measured]) for one in found] == [
        (("gpu-1", "gpu-2"), ["gpu-1 has 1", "gpu-2 has 1"]),
        (("gpu-3",), ["gpu-3 has 1"]),
    ]


def test_failures_with_other_remedies_are_apart():
    verification = cluster.verification()
    nodes = {name: cluster.node(name, "10.0.0.1") for name in ("gpu-1", "gpu-2")}
    for node, fix in zip(nodes.values(), ("reset it", "replace it"), strict=True):
        node["checks"][2].update(status="failed", measured="1", reason="hot", fix=fix)
    found = outcomes.attention(cluster.build_report(verification | {"nodes": nodes}, [], "A"))

    assert [[said.text for said in one.fix] for one in found] == [["reset it"], ["replace it"]]
