# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions and constraints."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.versions import (
    ConstraintError,
    at_least,
    check_constraint,
    major,
    matches,
    meet,
    minor,
    neighbours,
    starts_with,
)


@pytest.mark.parametrize(
    ("text", "prefix", "expected"),
    [
        ("535.54.03", "535", True),
        ("535.54.03", "535.54.3", True),
        ("550.54.15", "550.5", False),
        ("12.10.1", "12.1", False),
        ("2.13.0+cpu", "2.13", True),
        ("2.1", "2.1.2", False),
    ],
)
def test_prefixes_are_compared_part_by_part(text, prefix, expected):
    assert starts_with(text, prefix) is expected


def test_versions_are_no_strings():
    assert at_least("10.0", "9.9")
    assert at_least("580.65.06", "580.65.6")


@pytest.mark.parametrize(
    ("constraint", "fits", "does_not"),
    [
        ("latest", "1.0", None),
        ("12", "12.4.1", "13.0"),
        ("12.x", "12.4.1", "13.0"),
        ("12.*", "12.4.1", "11.8"),
        (">=12,<13", "12.9.1", "13.0.0"),
        ("~=2.4", "2.9.1", "3.0"),
        ("!=2.5.1", "2.5.0", "2.5.1"),
    ],
)
def test_constraints(constraint, fits, does_not):
    spec = check_constraint(constraint)
    assert matches(fits, spec)
    assert does_not is None or not matches(does_not, spec)


@pytest.mark.parametrize("text", ["newest", ">=x", "1..2", "cu121"])
def test_what_is_no_constraint(text):
    with pytest.raises(ConstraintError):
        check_constraint(text)


@pytest.mark.parametrize(
    ("text", "first", "both"),
    [("12.8.1", "12", "12.8"), ("13.0", "13", "13.0"), ("13", "13", "13"), (12.8, "12", "12.8")],
)
def test_major_and_minor(text, first, both):
    assert (major(text), minor(text)) == (first, both)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.3.5", ["2.3.1", "2.3.0", "2.4.1"]),  # not 2.5.1, which looks more like it
        ("2.4.0", ["2.4.1", "2.3.1", "2.3.0"]),
        ("2.99", ["2.10.0", "2.5.1", "2.4.1"]),  # in order of version: 2.10 is above 2.5
        ("0.1", ["2.2.2", "2.3.0", "2.3.1"]),
    ],
)
def test_neighbours_are_chosen_by_version_order(text, expected):
    assert neighbours(text, ["2.2.2", "2.3.0", "2.3.1", "2.4.1", "2.5.1", "2.10.0"]) == expected


def test_neighbours_keep_the_spelling_of_the_tables():
    assert neighbours("535.54", ["535.54.03", "535.104.05"], 1) == ["535.54.03"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (">=9.8,<10.0", "==9.1.0.70", False), (">=9.1,<10.0", "==9.1.0.70", True), (">=2.0", ">=1.23.5,<2.0.0", False),
        (">=2.0", ">=1.26,<2.1", True), (">=0.4.0", "~=0.3.1", False), (">=0.2.0", "~=0.3.1", True),
        (">=1.22", ">=1.22,<=1.24.3", True),
    ],
)  # fmt: skip
def test_ranges_meet_where_a_version_lies_in_both(one, other, expected):
    assert {meet(*pair) for pair in ((one, other), (other, one))} == {expected}
