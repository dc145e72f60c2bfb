# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver, case by case (cases.yml), and that every rule has a case for and one against it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe_all
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import RULES
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.input_error import InputError
from ansible_collections.allreduce.gpu.tests.support.frozen_tables import resolve

sys.path.insert(0, str(Path(__file__).parent))

from judges import cases, futures  # noqa: E402 (a neighbour, found through the line above)

CASES = cases()
EXPECTATIONS = ("gets", "refused", "error")
# No product in the tables can break these alone today; test_rules.py calls them directly.
ONLY_DIRECT = {
    "pytorch-ptx-driver",
    "pytorch-cudnn-gpu",
    "tensorflow-glibc",
    "horovod-cuda",
    "horovod-nccl",
    "horovod-cuda-compiler",
    "jax-cuda-major",  # these two doubt, and refuse nothing
    "vllm-cuda-major",
    *futures(),
}


def question(case):
    asked = {key: value for key, value in case.items() if key not in (*EXPECTATIONS, "name", "rule", "warns")}
    return {"os": "ubuntu 22.04", "gpus": ["A40"], **asked}


def at(stack, path):
    """A value of the stack by dotted path; torch is the first PyTorch with its build."""
    if path == "torch":
        environment = next(one for one in stack["environments"] if "pytorch" in one["frameworks"])
        return f"{environment['frameworks']['pytorch']}+{(environment['index'] or {'name': 'pypi'})['name']}"
    value = stack
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def check_refused(answer, expected):
    assert answer["stack"] is None
    conflicts = answer["conflicts"]
    found = [one for one in conflicts if one["between"] == sorted(expected["between"])]
    assert found, [(one["between"], one["reason"]) for one in conflicts]
    if "rule" in expected:
        assert any(expected["rule"] in (one["rule"], *one["rules"]) for one in found), found
    assert any(expected.get("says", "") in one["reason"] for one in found), found
    assert any(expected.get("advises", "") in (one["suggestion"] or "") for one in found), found
    if "works" in expected:
        assert expected["works"] in answer["suggestion"]["text"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case):
    if "error" in case:
        with pytest.raises(InputError) as caught:
            resolve(question(case))
        assert case["error"] in describe_all(caught.value.problems)
        return
    answer = resolve(question(case))
    if "refused" in case:
        check_refused(answer, case["refused"])
        return
    assert answer["stack"] is not None, [one["reason"] for one in answer["conflicts"]]
    assert {path: at(answer["stack"], path) for path in case["gets"]} == case["gets"]
    if "warns" in case:
        assert any(case["warns"] in text for text in answer["warnings"]), answer["warnings"]


def test_enough_cases_with_distinct_names():
    names = [case["name"] for case in CASES]
    assert len(names) >= 150
    assert len(set(names)) == len(names)


def test_every_case_expects_exactly_one_outcome():
    assert all(sum(key in case for key in EXPECTATIONS) == 1 for case in CASES)


@pytest.mark.parametrize("rule", [rule.name for rule in RULES if rule.name not in ONLY_DIRECT])
def test_every_rule_has_a_case_that_passes_and_one_it_refuses(rule):
    mine = [case for case in CASES if case.get("rule") == rule]
    assert any("gets" in case for case in mine), f"no case of rule {rule} gets through (judges/, or cases.yml)"
    assert any("refused" in case for case in mine), f"no case of rule {rule} is refused (judges/, or cases.yml)"


def test_cases_name_existing_rules():
    assert {case["rule"] for case in CASES if "rule" in case} <= {rule.name for rule in RULES}


def test_suggestions_resolve():
    """What is offered instead of a refused request works when asked for."""
    for case in CASES:
        if "refused" in case:
            offered = resolve(question(case))["suggestion"]
            if offered:
                again = {
                    **question(case),
                    "request": offered["request"],
                    "environments": offered["request"].get("environments"),
                }
                again.pop("python", None)
                if "python_env_python" in offered["changes"]:
                    again["interpreter"] = offered["changes"]["python_env_python"]
                assert resolve(again)["stack"] is not None, case["name"]
