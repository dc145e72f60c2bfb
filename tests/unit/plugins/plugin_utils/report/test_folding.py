# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import folding
from ansible_collections.allreduce.gpu.tests.report import cluster


@pytest.fixture
def verification():
    """Two equal nodes."""
    return cluster.verification() | {"nodes": {name: cluster.node(name, "10.0.0.1") for name in ("gpu-1", "gpu-2")}}


def test_equal_nodes_are_one_kind(large_report):
    kinds = folding.kinds(large_report)

    assert [(kind.label, len(kind.nodes), kind.differences) for kind in kinds] == [
        ("gpu-7", 1, 1),
        ("gpu-[1-6,8-1000]", 999, 0),
    ]


def test_what_is_planned_and_installed_stands_once_for_all_nodes(large_report):
    found = folding.parts(large_report)

    assert len(found) == len({(part.item.component, part.item.name, part.item.result) for part in found}) == 20
    loaded = [part for part in found if part.item.result != "as planned"]
    assert [(part.item.name, part.nodes) for part in loaded] == [("loaded module", ("gpu-7",))]
    assert found[0] is loaded[0]
    assert {len(part.nodes) for part in found[1:]} == {1000, 999}


def test_parts_that_are_as_planned_in_different_ways_are_one_row(verification):
    verification["nodes"]["gpu-2"]["comparisons"][4]["observed"] = "535.261.03-2"
    found = folding.parts(cluster.build_report(verification, [], "A"))
    (part,) = [one for one in found if one.item.name == "nvidia-kernel-dkms"]

    assert part.nodes == ("gpu-1", "gpu-2")
    assert part.planned == (folding.Said("535.*", ("gpu-1", "gpu-2")),)
    assert part.installed == (folding.Said("535.261.03-1", ("gpu-1",)), folding.Said("535.261.03-2", ("gpu-2",)))


def test_parts_that_are_missing_are_one_row(verification):
    missing = [
        {"component": "driver", "subject": f"nvidia-{number}", "desired": "535.*", "observed": "", "status": "missing"}
        for number in range(14)
    ]
    for node in verification["nodes"].values():
        node["comparisons"] += missing
    found = folding.parts(cluster.build_report(verification, [], "A"))
    assert found[0].names == tuple(f"nvidia-{number}" for number in range(14))
    assert found[0].nodes == ("gpu-1", "gpu-2")
    assert {len(part.names) for part in found[1:]} == {1}


def test_equal_notes_stand_once(verification):
    note = {"check": "oom_kills", "gpu": None, "measured": "1 killed: python3", "severity": "note", "action": "look"}
    for node in verification["nodes"].values():
        node["gpu_health"] = {"verdict": "ok", "notes": [note]}
    report = cluster.build_report(verification, [], "A")

    assert folding.notes(report) == (folding.Said("oom kills: 1 killed: python3. Look.", ("gpu-1", "gpu-2")),)


@pytest.mark.parametrize(
    ("text", "long"),
    [
        ("a; b; c; d; e; f", folding.Long("a; b; c; d; e; f")),
        ("a; b; c; d; e; f; g", folding.Long("a; b; c;", "d; e; f; g", 4)),
        ("a, b, c, d, e, f, g, h", folding.Long("a, b, c,", "d, e, f, g, h", 5)),
        ("a, b; c", folding.Long("a, b; c")),
        ("", folding.Long("")),
    ],
)
def test_a_long_list_is_folded(text, long):
    assert folding.shortened(text) == long
    words = f"{long.beginning} {long.rest}".replace(";", " ").replace(",", " ").split()
    assert words == text.replace(";", " ").replace(",", " ").split()


def test_a_label_of_unrelated_names_says_how_many():
    names = [f"{chr(97 + number % 26)}{number}x" for number in range(100)]

    assert folding.label(names) == "a0x, a26x and 98 other nodes"
