# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values are compared with argument specs down to the keys of dictionaries."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.options import value_problems
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import Problem
from hypothesis import given
from hypothesis import strategies as st

REQUEST = {
    "type": "dict",
    "options": {
        "driver": {"type": "str"},
        "source": {"type": "str", "choices": ["auto", "nvidia"]},
        "gpus": {"type": "list", "elements": "str"},
        "nvswitches": {"type": "int"},
    },
}
PINS = {
    "type": "list",
    "elements": "dict",
    "options": {"package": {"type": "str", "required": True}, "priority": {"type": "int"}},
}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ({"type": "int"}, 600),
        ({"type": "int"}, "600"),
        ({"type": "bool"}, "yes"),
        ({"type": "str"}, 12),
        ({"type": "str"}, True),
        ({"type": "raw"}, [{"a": 1}]),
        ({"type": "list", "elements": "str"}, "a,b"),
        ({"type": "dict"}, '{"a": 1}'),
        ({"type": "str", "choices": ["present", "absent"]}, "absent"),
        ({"type": "int", "default": None}, None),
        (REQUEST, {"driver": 535, "gpus": ["A40", 8], "nvswitches": "6", "source": None}),
        (PINS, [{"package": "a", "priority": "-1"}]),
    ],
)
def test_a_value_that_ansible_can_convert_passes(option, value):
    assert list(value_problems("x", value, option)) == []


@pytest.mark.parametrize("kind", ["int", "float"])
@pytest.mark.parametrize(
    "value",
    [
        float("inf"), float("nan"), -float("inf"), 10**400, -(10**400), "9" * 5000, "1e400", "\N{SUPERSCRIPT TWO}",
        "\N{ARABIC-INDIC DIGIT THREE}", "inf", "NaN", "1_000", "0x10",
    ],
)  # fmt: skip
def test_what_no_program_reads_as_a_number_is_refused(kind, value):
    (problem,) = value_problems("x", value, {"type": kind})
    assert problem == Problem("wrong_type", "x", {"type": kind, "value": value})
    (problem,) = value_problems("x", [value], {"type": "list", "elements": kind})
    assert problem.subject == "x[0]"


def test_an_exponent_is_for_numbers_that_need_not_be_whole():
    assert [one.code for one in value_problems("x", "1e4", {"type": "int"})] == ["wrong_type"]
    assert list(value_problems("x", "1e4", {"type": "float"})) == []


@given(st.text("0123456789+-.eE_ \u0663\u00b2", max_size=40) | st.integers() | st.floats() | st.integers().map(str))
def test_what_passes_as_a_whole_number_is_one_for_python(value):
    if not list(value_problems("x", value, {"type": "int"})):
        assert abs(int(value)) <= 2**63


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ({"type": "int"}, "soon", Problem("wrong_type", "x", {"type": "int", "value": "soon"})),
        ({"type": "int", "default": 5}, None, Problem("wrong_type", "x", {"type": "int", "value": None})),
        ({"type": "bool"}, "maybe", Problem("wrong_type", "x", {"type": "bool", "value": "maybe"})),
        ({"type": "str"}, {"a": 1}, Problem("wrong_type", "x", {"type": "str", "value": {"a": 1}})),
        ({"type": "path"}, ["a"], Problem("wrong_type", "x", {"type": "path", "value": ["a"]})),
        ({"type": "dict"}, "latest", Problem("wrong_type", "x", {"type": "dict", "value": "latest"})),
        ({"type": "list", "elements": "str"}, 4, Problem("wrong_type", "x", {"type": "list", "value": 4})),
        ({"type": "str"}, 2.10, Problem("number_without_quotes", "x", {"value": 2.1})),
        (REQUEST, {"driver": 535.54}, Problem("number_without_quotes", "x.driver", {"value": 535.54})),
        (REQUEST, {"gpus": [4.0]}, Problem("number_without_quotes", "x.gpus[0]", {"value": 4.0})),
        (
            {"type": "str", "choices": ["present", "absent"]},
            "gone",
            Problem("wrong_choice", "x", {"choices": ["present", "absent"], "value": "gone"}),
        ),
        (REQUEST, {"drivr": "535"}, Problem("misspelt_key", "x.drivr", {"nearest": "driver"})),
        (REQUEST, {"zzz": 1}, Problem("unknown_key", "x.zzz", {"keys": list(REQUEST["options"])})),
        (REQUEST, {"nvswitches": "six"}, Problem("wrong_type", "x.nvswitches", {"type": "int", "value": "six"})),
        (REQUEST, {"gpus": [["A40"]]}, Problem("wrong_type", "x.gpus[0]", {"type": "str", "value": ["A40"]})),
        (REQUEST, {"gpus": {"A40": 4}}, Problem("wrong_type", "x.gpus", {"type": "list", "value": {"A40": 4}})),
        (PINS, [{"priority": 1}], Problem("missing_key", "x[0]", {"key": "package"})),
        (PINS, [{"package": "a", "priority": "high"}],
         Problem("wrong_type", "x[0].priority", {"type": "int", "value": "high"})),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_named_by_its_path(option, value, problem):
    assert list(value_problems("x", value, option)) == [problem]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text() | st.integers(), part, max_size=3),
    max_leaves=8,
)


@given(
    option=st.sampled_from(
        [REQUEST, PINS, *({"type": kind} for kind in ("bool", "int", "float", "str", "path", "raw"))]
    ),
    value=anything,
)
def test_no_value_crashes_it(option, value):
    for problem in value_problems("x", value, option):
        assert problem.subject.startswith("x")
