# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.benchmark.scaling import Curve, Point
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.curve import BOTTOM, LEFT, RIGHT, TOP, plot
from hypothesis import given
from hypothesis import strategies as st


def drawn(*sizes):
    """Draw (ranks, images/s)."""
    least, base = sizes[0]
    points = (Point(1, ranks, value, value / base, value / base * least / ranks) for ranks, value in sizes)
    return plot(Curve("resnet50", "tuned", "cuda", tuple(points)))


def test_perfect_scaling_lies_on_the_ideal_line():
    found = drawn((1, 100.0), (2, 200.0), (4, 400.0))
    assert [(dot.x, dot.y) for dot in found.dots] == [
        (LEFT, BOTTOM),
        ((LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2),
        (RIGHT, TOP),
    ]
    assert (found.ideal.x1, found.ideal.y1, found.ideal.x2, found.ideal.y2) == (LEFT, BOTTOM, RIGHT, TOP)


def test_what_falls_behind_lies_below_the_ideal_line():
    found = drawn((1, 450.0), (4, 1700.0), (8, 3400.0))
    assert found.ideal.y2 == TOP < found.dots[-1].y < found.dots[0].y == BOTTOM
    assert [dot.efficiency for dot in found.dots] == ["", "94%", "94%"]


def test_better_than_perfect_stays_in_the_picture():
    found = drawn((1, 100.0), (2, 250.0))
    assert found.dots[-1].y == TOP < found.ideal.y2


@pytest.mark.parametrize("sizes", [((1, 100.0),), ((2, 100.0), (2, 90.0))])
def test_one_size_is_no_curve(sizes):
    assert drawn(*sizes) is None


def test_the_picture_in_words():
    assert drawn((1, 100.0), (2, 150.0)).text == (
        "1 rank on 1 node: 100 images/s, efficiency 100%; 2 ranks on 1 node: 150 images/s, efficiency 75%."
    )


@given(st.lists(st.floats(0.01, 1e7), min_size=2, max_size=10))
def test_every_point_is_in_the_picture(values):
    found = drawn(*((1 << place, value) for place, value in enumerate(values)))
    assert all(LEFT <= dot.x <= RIGHT and TOP <= dot.y <= BOTTOM for dot in found.dots)
    assert TOP <= found.ideal.y2 <= BOTTOM
    assert len(found.lines) == len(values) - 1
