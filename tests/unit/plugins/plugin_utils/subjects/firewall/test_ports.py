# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of ports, compared with sets of numbers."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.ports import (
    parse_range,
    union,
    within,
    without,
    words,
)
from hypothesis import given
from hypothesis import strategies as st

RANGES = st.lists(
    st.tuples(st.integers(1, 65535), st.integers(0, 9)).map(lambda pair: (pair[0], min(65535, sum(pair)))), max_size=6
)


def numbers(ranges):
    return {port for first, last in ranges for port in range(first, last + 1)}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (22, (22, 22)), ("9100", (9100, 9100)), ("50000-50999", (50000, 50999)), (" 80 ", (80, 80)), ("1-65535", (1, 65535)),
        (0, None), ("65536", None), ("9-8", None), ("ssh", None), ("1-2-3", None), ("-1", None), ("", None), (None, None),
        (True, None), (1.5, None),
    ],
)  # fmt: skip
def test_a_port_or_a_range(value, expected):
    assert parse_range(value) == expected


@given(RANGES, RANGES)
def test_as_sets_of_numbers(left, right):
    assert numbers(union(left)) == numbers(left)
    assert numbers(without(left, right)) == numbers(left) - numbers(right)
    assert numbers(within(left, right)) == numbers(left) & numbers(right)


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(1, 2), (3, 4)], ((1, 4),)),
        ([(1, 2), (4, 4)], ((1, 2), (4, 4))),
        ([(5, 9), (1, 9), (6, 7)], ((1, 9),)),
        ([(65535, 65535), (1, 1)], ((1, 1), (65535, 65535))),
    ],
)
def test_as_few_ranges_as_there_can_be(ranges, expected):
    assert union(ranges) == expected


@given(RANGES)
def test_ranges_are_sorted_and_do_not_touch(ranges):
    found = union(ranges)
    assert all(first <= last for first, last in found)
    assert all(found[place][1] + 1 < found[place + 1][0] for place in range(len(found) - 1))
    assert union(map(parse_range, words(found))) == found
