# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import random

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.network.schedule import (
    chosen_rounds,
    full_rounds,
    partners,
    rounds,
)
from hypothesis import given
from hypothesis import strategies as st

EVERYBODY = 10_000


def names(count):
    return [f"gpu-{number}" for number in range(count)]


@given(st.integers(2, 70))
def test_a_full_schedule_has_each_pair_exactly_once(count):
    met = [frozenset(pair) for one in rounds(names(count), EVERYBODY) for pair in one]
    assert len(met) == len(set(met)) == count * (count - 1) // 2


@given(st.integers(2, 300), st.integers(1, 40))
def test_no_node_is_twice_in_a_round_and_at_most_one_rests(count, most):
    schedule = rounds(names(count), most)
    assert len(schedule) == min(most, full_rounds(count))
    for one in schedule:
        playing = [node for pair in one for node in pair]
        assert len(playing) == len(set(playing)) == count - count % 2


@given(st.integers(2, 300), st.integers(1, 40))
def test_no_pair_meets_again_in_a_sample(count, most):
    met = [frozenset(pair) for one in rounds(names(count), most) for pair in one]
    assert len(met) == len(set(met))


@given(st.integers(2, 60), st.integers(1, 40))
def test_partners_are_those_of_the_rounds(count, most):
    schedule = rounds(names(count), most)
    for node in names(count):
        expected = [other for one in schedule for pair in one if node in pair for other in pair if other != node]
        assert partners(node, names(count), most) == expected


@pytest.mark.parametrize(("count", "full"), [(0, 0), (1, 0), (2, 1), (3, 3), (4, 3), (999, 999), (1000, 999)])
def test_the_number_of_rounds(count, full):
    assert full_rounds(count) == len(rounds(names(count), EVERYBODY)) == full


def test_a_sample_of_a_thousand_nodes_is_bounded_and_spread():
    chosen = chosen_rounds(1000, 16)
    assert len(chosen) == 16 and chosen[0] == 0 and chosen[-1] > 900
    assert {len(partners(node, names(1000), 16)) for node in names(1000)} == {16}


@pytest.mark.parametrize("count", [64, 100, 511, 1000])
def test_a_sample_leads_from_every_node_to_every_other(count):
    """Otherwise a cluster cut in two would pass."""
    met, todo = {"gpu-0"}, ["gpu-0"]
    while todo:
        new = set(partners(todo.pop(), names(count), 16)) - met
        met |= new
        todo += new
    assert len(met) == count


def test_nobody_meets_a_stranger():
    assert partners("login", names(4), 16) == []
    assert partners("gpu-0", ["gpu-0"], 16) == []


def test_names_do_not_matter():
    shuffled = random.Random(7).sample(names(9), 9)
    assert {frozenset(pair) for one in rounds(shuffled, EVERYBODY) for pair in one} == {
        frozenset(pair) for one in rounds(names(9), EVERYBODY) for pair in one
    }
