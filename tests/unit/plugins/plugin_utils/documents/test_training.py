# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import math

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.training import Metrics
from hypothesis import given
from hypothesis import strategies as st

NUMBERS = ("samples_per_second", "loss_first", "loss_last", "epochs")
TEXTS = ("device", "backend")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


@pytest.mark.parametrize(
    ("value", "number", "text"),
    [
        (None, None, ""),
        (True, None, ""),
        (3, 3.0, "3"),
        (2.5, 2.5, "2.5"),
        ("2.5", 2.5, "2.5"),
        ("cuda", None, "cuda"),
        (10**400, math.inf, str(10**400)),
        (-(10**400), -math.inf, str(-(10**400))),
        ([1], None, ""),
        ({"a": 1}, None, ""),
    ],
    ids=lambda value: str(value)[:8],
)
def test_what_can_be_understood_is_read(value, number, text):
    found = Metrics.read(dict.fromkeys(NUMBERS + TEXTS, value))
    assert [getattr(found, name) for name in NUMBERS] == [number] * len(NUMBERS)
    assert [getattr(found, name) for name in TEXTS] == [text] * len(TEXTS)


def test_none_is_no_metrics():
    assert Metrics.read(None) == Metrics.read({"other": 1}) == Metrics()


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ([2, 1.5, "0.5"], (2.0, 1.5, 0.5)),
        ([], ()),
        ([2.0, None], ()),
        ([2.0, math.nan], ()),
        ([2.0, math.inf], ()),
        ([2.0, 1e300], ()),
        ("2.0", ()),
        ({"a": 1}, ()),
        (None, ()),
    ],
    ids=str,
)
def test_losses_are_numbers_that_can_be_drawn_or_none(value, read):
    assert Metrics.read({"losses": value}).losses == read


@given(st.dictionaries(st.sampled_from((*NUMBERS, *TEXTS, "losses")), JSON))
def test_any_metrics_have_plain_types(values):
    for name, value in dataclasses.asdict(Metrics.read(values)).items():
        if name == "losses":
            assert all(isinstance(one, float) and math.isfinite(one) for one in value)
        else:
            assert type(value) in ((str,) if name in TEXTS else (float, type(None)))
