# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import itertools
import random

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.network.population import (
    Population,
    Sample,
    differs,
    judge,
    population,
)
from hypothesis import given
from hypothesis import strategies as st

SPEEDS = st.floats(1e6, 4e11)


def measured(count, value=lambda source, target: 25e9, scatter=0.01, seed=1):
    """Every ordered pair of a cluster, each a little different."""
    noise = random.Random(seed)
    return [
        Sample(f"n{a}", f"n{b}", value(a, b) * (1 + scatter * (noise.random() - 0.5)))
        for a, b in itertools.permutations(range(count), 2)
    ]


@pytest.mark.parametrize("count", [3, 4, 5, 8, 17])
@pytest.mark.parametrize(("faster", "bad"), [(True, 0.5), (True, 0.9), (False, 2.0)])
def test_a_slow_node_is_named_and_its_pairs_are_not_blamed(count, faster, bad):
    found = judge(measured(count, lambda a, b: 25e9 * (bad if 1 in (a, b) else 1)), faster)
    assert (found.nodes, found.pairs) == (("n1",), ())


@pytest.mark.parametrize("count", [4, 5, 8, 17])
def test_a_slow_pair_is_named_and_its_nodes_are_not_blamed(count):
    found = judge(measured(count, lambda a, b: 25e9 * (0.5 if (a, b) == (2, 1) else 1)), True)
    assert found.nodes == ()
    assert [(one.source, one.target) for one in found.pairs] == [("n2", "n1")]


def test_a_node_may_be_slow_in_one_direction():
    found = judge(measured(6, lambda a, b: 25e9 * (0.3 if b == 4 else 1)), True)
    assert (found.sources, found.targets, found.pairs) == ((), ("n4",), ())


@pytest.mark.parametrize("scatter", [0.0, 0.01, 0.09])
def test_equal_nodes_are_not_slow(scatter):
    for seed in range(20):
        found = judge(measured(8, scatter=scatter, seed=seed), True)
        assert (found.nodes, found.pairs) == ((), ())


@pytest.mark.parametrize("count", [0, 2])
def test_two_nodes_have_no_majority(count):
    assert judge(measured(count, lambda a, b: 1e9 if a else 25e9), True) is None


def test_with_one_pair_each_nobody_knows_which_node_is_slow():
    pairs = [Sample("a", "b", 1e9), Sample("c", "d", 25e9), Sample("e", "f", 25e9), Sample("g", "h", 25e9)]
    assert judge(pairs, True) is None


@given(st.permutations(measured(5, lambda a, b: 25e9 * (0.5 if (a, b) in ((0, 3), (2, 1)) else 1))))
def test_the_order_does_not_matter(samples):
    assert judge(samples, True) == judge(sorted(samples, key=repr), True)


@given(st.lists(SPEEDS, min_size=20, max_size=20), st.permutations(range(5)))
def test_names_do_not_matter(values, order):
    pairs = list(itertools.permutations(range(5), 2))
    samples = [Sample(str(a), str(b), value) for (a, b), value in zip(pairs, values, strict=True)]
    renamed = [Sample(str(order[int(one.source)]), str(order[int(one.target)]), one.value) for one in samples]
    found, again = judge(samples, True), judge(renamed, True)
    assert {str(order[int(node)]) for node in found.nodes} == set(again.nodes)
    assert {(str(order[int(one.source)]), str(order[int(one.target)])) for one in found.pairs} == {
        (one.source, one.target) for one in again.pairs
    }


@given(st.lists(SPEEDS, min_size=12, max_size=12), st.integers(-8, 8))
def test_the_unit_does_not_matter(values, power):
    """No absolute number decides; powers of two keep every digit."""
    pairs = list(itertools.permutations("abcd", 2))
    samples = [Sample(a, b, value) for (a, b), value in zip(pairs, values, strict=True)]
    scaled = [Sample(one.source, one.target, one.value * 2.0**power) for one in samples]
    found, again = judge(samples, True), judge(scaled, True)
    assert (found.sources, found.targets) == (again.sources, again.targets)
    assert [(one.source, one.target) for one in found.pairs] == [(one.source, one.target) for one in again.pairs]


@pytest.mark.parametrize(
    ("value", "deviation", "slow"),
    [
        (94.0, 0.0, True),  # all others are equal: more than 5 %
        (96.0, 0.0, False),
        (94.0, 1.0, True),  # a modified z-score of 4.0
        (94.0, 2.0, False),  # of 2.0
        (106.0, 0.0, False),  # faster is not slow
    ],
)
def test_both_limits_count(value, deviation, slow):
    assert differs(value, Population(100.0, deviation), True) is slow
    assert differs(200.0 - value, Population(100.0, deviation), False) is slow


@given(st.lists(SPEEDS, min_size=1, max_size=30))
def test_a_median_is_no_outlier(values):
    among = population(values)
    assert not differs(among.median, among, True) and not differs(among.median, among, False)
