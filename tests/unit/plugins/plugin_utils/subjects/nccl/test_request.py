# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users ask for in NCCL's file, and what of it is refused by name."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.nccl.request import (
    problems,
    refused,
    request,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from hypothesis import given
from hypothesis import strategies as st


def codes(**variables):
    found = list(problems(request(variables)))
    names = [name for value in variables.values() for name in value]
    assert all(len(describe(one)) > 40 and one.subject in names for one in found)
    assert all(one.detail.get("variable", *variables) in variables for one in found)
    return [one.code for one in found]


def test_nothing_is_asked_for_by_default():
    assert request({}).present is False and request({"nccl_conf_state": "present"}).present is True


@pytest.mark.parametrize(
    ("value", "text"), [(106, "106"), (True, "1"), ("=mlx5_0,mlx5_1:2", "=mlx5_0,mlx5_1:2"), (None, None)]
)
def test_values_are_text(value, text):
    assert request({"nccl_conf_variables": {"NCCL_X": value}}).variables == {"NCCL_X": text}
    assert codes(nccl_conf_variables={"NCCL_X": value}) == []


@pytest.mark.parametrize("name", ["nccl_x", "NCCL_x", "TORCH_NCCL_X", "NCCL_", "NCCL_X ", "NCCL_X\n", "NCCL_X=1", ""])
def test_names(name):
    assert codes(nccl_conf_variables={name: 1}) == ["nccl_no_variable"]
    assert codes(nccl_conf_elsewhere=[name]) == ["nccl_no_variable"]


@pytest.mark.parametrize("value", ["", " ", "a ", " a", "a\nNCCL_Y=1", "a\rb", "a\x00", "a\u2028b", "a" * 1024])
def test_values_are_one_line_that_nccl_reads(value):
    assert codes(nccl_conf_variables={"NCCL_X": value}) == ["nccl_no_value"]


@given(st.text())
def test_no_value_makes_a_second_line(value):
    if not list(problems(request({"nccl_conf_variables": {"NCCL_X": value}}))):
        assert f"NCCL_X={value}".splitlines() == [f"NCCL_X={value}"]


@pytest.mark.parametrize("row", refused(), ids=lambda row: row.name)
def test_what_is_refused_by_name(row):
    assert codes(nccl_conf_variables={row.name: "1"}) == ["nccl_refused"]
    assert codes(nccl_conf_variables={row.name: None}) == []
    assert len(row.reason) > 20 and not row.reason.endswith(".") and len(row.source) > 5
