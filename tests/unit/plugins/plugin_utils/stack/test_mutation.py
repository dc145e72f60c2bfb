# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every rule is needed, and the independent checker sees where it is missing: without it, wrong stacks come out."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import RULES
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.input_error import InputError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.inputs import read_question
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.judge import Session
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.result import build_stack
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.search import solve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import Tables, load

sys.path.insert(0, str(Path(__file__).parent))

import checker  # noqa: E402 (a neighbour, found through the line above)
from judges import cases, futures, judges, rows_of  # noqa: E402

CASES = cases()
EXPECTATIONS = ("gets", "refused", "error", "name", "rule", "warns")
TABLES = load()
SESSION = Session(TABLES)
# About the controller: nothing in a stack tells of it.
NOT_OF_THE_STACK = {"ansible-core-python"}
# They only doubt: a stack without them is not wrong, and test_field.py has what they prefer and warn of.
DOUBTS = {"jax-cuda-major", "vllm-cuda-major"}


def question(case):
    return {
        "os": "ubuntu 22.04", "gpus": ["A40"], **{key: case[key] for key in case if key not in EXPECTATIONS}
    }  # fmt: skip


def faults_without(rule, asked, session=SESSION):
    """What the checker says of the stack one would get if this rule were not."""
    try:
        parsed = read_question(session.tables, asked)
    except InputError:
        return []
    solution = solve(session, parsed, [one for one in RULES if one is not rule])
    return faults(session.tables, parsed, solution, asked) if solution else []


def faults(tables, parsed, solution, asked):
    return checker.check(build_stack(tables, parsed, solution), asked.get("kernels") or ())


def by_kinship(rule):
    """The cases, those first that are written for this rule, the refused before the others."""
    mine = (rule.name,)
    return sorted(
        (case for case in CASES if "error" not in case),
        key=lambda case: (
            case.get("rule") not in mine and (case.get("refused") or {}).get("rule") not in mine,
            "gets" in case,
        ),
    )


def cudnn_that_dropped_volta(subjects):
    next(row for row in subjects["cudnn"]["rows"] if row["version"] == "9.12.0.46")["cuda"] = "12"


def old_glibc(subjects):
    next(row for row in subjects["distros"]["rows"] if (row["id"], row["version"]) == ("ubuntu", "22.04"))["glibc"] = (
        "2.12"
    )


def torch_with_ptx_only(subjects):
    build = next(row for row in subjects["torch"]["rows"] if row["version"] == "2.8.0")["builds"][0]
    build.update(sass=["5.0"], ptx="8.0")


def torch_with_a_newer_cudnn(subjects):
    next(row for row in subjects["torch"]["rows"] if row["version"] == "2.8.0")["builds"][0]["cudnn"] = "9.12.0.46"


def toolkit_on_a_newer_system(subjects):
    debian = next(row for row in subjects["distros"]["rows"] if (row["id"], row["version"]) == ("debian", "12"))
    debian["cuda_first"] = "11.8"


# Rules that no product in today's tables can break alone: what a table would have to say, and what is asked then.
FUTURES = {
    "cudnn-gpu": (cudnn_that_dropped_volta, {"gpus": ["V100 PCIe"], "request": {"cudnn": "9.12", "cuda": "12.8", "driver": "570", "pytorch": "none"}}),
    "tensorflow-glibc": (old_glibc, {"request": {"tensorflow": "2.20.0", "pytorch": "none"}}),
    "horovod-cuda-compiler": (toolkit_on_a_newer_system, {"os": "debian 12", "request": {"horovod": "0.28.1", "cuda": "11.8"}}),
    **futures(),
    "pytorch-cudnn-gpu": (torch_with_a_newer_cudnn, {"gpus": ["V100 PCIe"], "request": {"pytorch": "2.8.0", "pytorch_index": "cu128"}}),
    "pytorch-ptx-driver": (torch_with_ptx_only, {"request": {"pytorch": "2.8.0", "pytorch_index": "cu128", "driver": "535"}}),
}  # fmt: skip


@pytest.fixture
def future(monkeypatch):
    """Tables of another day, for the resolver and for the checker."""

    def make(change):
        subjects = copy.deepcopy(TABLES.subjects)
        change(subjects)
        monkeypatch.setattr(checker, "TORCH", {row["version"]: row for row in subjects["torch"]["rows"]})
        cudnn = {(row["version"], row["cuda"]): row for row in subjects["cudnn"]["rows"]}
        monkeypatch.setattr(checker, "CUDNN", cudnn)
        systems = {(row["id"], row["version"]): row for row in subjects["distros"]["rows"]}
        monkeypatch.setattr(checker, "DISTROS", systems)
        for name, judge in judges().items():
            monkeypatch.setattr(judge, "ROWS", rows_of(name, subjects))
        return Session(Tables("future", subjects))

    return make


@pytest.mark.parametrize(
    "rule", [one for one in RULES if one.name not in {*FUTURES, *NOT_OF_THE_STACK, *DOUBTS}], ids=lambda rule: rule.name
)
def test_without_a_rule_a_wrong_stack_comes_out(rule):
    assert any(faults_without(rule, question(case)) for case in by_kinship(rule))


@pytest.mark.parametrize("name", FUTURES)
def test_without_a_rule_for_products_to_come_a_wrong_stack_comes_out(name, future):
    change, asked = FUTURES[name]
    session = future(change)
    rule = next(one for one in RULES if one.name == name)
    asked = {"os": "ubuntu 22.04", "gpus": ["A40"], **asked}
    assert faults_without(rule, asked, session)
    assert solve(session, read_question(session.tables, asked)) is None, "with the rule it is refused"


def test_what_is_excepted_exists():
    assert {*FUTURES, *NOT_OF_THE_STACK, *DOUBTS} <= {rule.name for rule in RULES}


def test_the_checker_accepts_what_the_resolver_returns():
    for case in CASES:
        if "gets" in case:
            parsed = read_question(TABLES, question(case))
            assert faults(TABLES, parsed, solve(SESSION, parsed), case) == [], case["name"]
