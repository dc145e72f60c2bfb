# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.machine import Device, Group, Link, Machine
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.wiring import Anchor, thickness, wire


def machine(gpus, links=(), fabric=False):
    members = tuple(gpus)
    return Machine((Group("NUMA", "NUMA node 0", "", members),), tuple(links), 0, fabric, (), (), (), ())


def gpu(number, links=0, faulty=""):
    return Device("gpu", f"GPU{number}", f"GPU{number}", (), "", links, faulty)


def ends(path):
    """The first and the last point of a path."""
    points = [tuple(float(number) for number in pair.split(",")) for pair in re.findall(r"[\d.-]+,[\d.-]+", path)]
    return points[0], points[-1]


@pytest.mark.parametrize(("few", "many"), [(1, 2), (2, 4), (4, 12), (12, 18)])
def test_more_links_are_a_thicker_line(few, many):
    assert thickness(few) < thickness(many)


@pytest.mark.parametrize("stacked", [False, True])
def test_an_arc_goes_from_edge_to_edge_and_has_its_label_on_top(stacked):
    gpus = [gpu(0), gpu(1)]
    wiring = wire(machine(gpus, [Link("GPU0", "GPU1", 4)]), stacked)
    anchors = [Anchor(gpus[0], (0, 100), wiring.depth + 5), Anchor(gpus[1], (110, 210), wiring.depth + 12)]
    ((line,), ((x, y, text, fault),)) = wiring.lines(anchors)
    turn = (lambda point: point[::-1]) if stacked else (lambda point: point)
    assert [turn(end) for end in ends(line.path)] == [(50, wiring.depth + 5), (160, wiring.depth + 12)]
    assert (text, fault) == ("4", False)
    along, across = turn((x, y - 4))
    assert along == 105
    assert 0 <= across < wiring.depth


def test_outer_arcs_enclose_inner_ones_at_a_gpu():
    gpus = [gpu(number) for number in range(3)]
    pairs = [Link("GPU0", "GPU1", 1), Link("GPU0", "GPU2", 1), Link("GPU1", "GPU2", 1)]
    wiring = wire(machine(gpus, pairs), False)
    anchors = [Anchor(one, (100 * number, 100 * number + 90), 80) for number, one in enumerate(gpus)]
    near, far, last = (ends(line.path) for line in wiring.lines(anchors)[0])
    assert far[0][0] < near[0][0]
    assert far[1][0] > last[1][0]
    assert near[1][0] < last[0][0]


def test_switched_gpus_reach_the_bar_and_lost_ones_do_not():
    gpus = [gpu(0, 12), gpu(1, 10, "10/12"), gpu(2)]
    wiring = wire(machine(gpus, fabric=True), False)
    lines, labels = wiring.lines(
        [Anchor(one, (100 * number, 100 * number + 90), 80) for number, one in enumerate(gpus)]
    )
    assert [ends(line.path)[1] for line in lines] == [(45, wiring.thickness), (145, wiring.thickness)]
    assert [(text, fault) for _x, _y, text, fault in labels] == [("12", False), ("10/12", True)]


def test_without_links_no_room_is_taken():
    assert wire(machine([gpu(0), gpu(1)]), False).depth == 0
