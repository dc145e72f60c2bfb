# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.chart import chart
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.model import Scaling, Size


def size(nodes, throughput, speedup):
    return Size(f"{nodes}n", nodes, 4 * nodes, throughput, speedup, speedup / nodes)


def test_lengths_are_proportional_and_perfect_scaling_fills_the_width():
    picture = chart(Scaling("train.py", (size(1, 100, 1), size(2, 150, 1.5))))

    assert [(stroke.length, stroke.linear) for stroke in picture.strokes] == [(50, None), (75, 100)]


def test_better_than_perfect_fills_the_width_itself():
    picture = chart(Scaling("train.py", (size(1, 100, 1), size(2, 250, 2.5))))

    assert [(stroke.length, stroke.linear) for stroke in picture.strokes] == [(40, None), (100, 80)]


def test_what_the_figures_do_not_say_stands_in_the_picture():
    caveat = "The nodes share one machine: this efficiency says nothing about a network."
    assert chart(Scaling("train.py", (size(1, 100, 1), size(2, 150, 1.5)), caveat)).caveat == caveat


def test_the_picture_in_words():
    picture = chart(Scaling("train.py", (size(1, 100, 1), size(2, 150, 1.5))))

    assert picture.text == (
        "1 node, 4 processes: 100 samples/s; "
        "2 nodes, 8 processes: 150 samples/s, 1.50 times the throughput, efficiency 75%."
    )
