# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be part of a conflict, what is left without a part, and which conflicts are found."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.blame import MOST, blamed, keep, parts_of
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.inputs import read_question
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.judge import Session
from ansible_collections.allreduce.gpu.tests.support.frozen_tables import TABLES

FACTS = [("gpus", "A40"), ("kernels", "6.8.0-84-generic"), ("os", ""), ("arch", ""), ("ansible_core", "")]
BOTH = {"pytorch": "2.15", "tensorflow": "2.20"}


def question_of(request, gpus=("A40",), kernels=("6.8.0-84-generic",), **question):
    return read_question(
        TABLES, {"os": "ubuntu 22.04", "gpus": gpus, "kernels": kernels, "request": request, **question}
    )


@pytest.mark.parametrize(
    ("request_", "environments", "shared"),
    [(BOTH, "one", [("environments", "one")]), (BOTH, "split", []), ({"pytorch": "2.15"}, "one", [])],
)
def test_frameworks_share_an_environment_only_where_there_are_several(request_, environments, shared):
    parts = parts_of(question_of(request_, environments=environments))
    assert parts == [*FACTS, *shared, *sorted(request_.items())]


def test_what_is_not_kept_is_not_asked():
    asked = question_of(BOTH, environments="one")
    without = keep(asked, [("gpus", "A40")])
    assert (without.os, without.arch, without.kernels, without.constraints) == (None, None, (), {})
    assert [gpu.model for gpu in without.gpus] == ["A40"]
    assert without.environments == "split"
    assert keep(asked, parts_of(asked)).environments == "one"


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        ([("os", "")], {"os"}),
        ([("arch", "")], {"arch", "wheels"}),
        ([("kernels", "6.8.0-84-generic")], {"kernels"}),
        ([("gpus", "A40")], {"gpus"}),
        ([("ansible_core", "")], {"ansible_core"}),
        ([("os", ""), ("ansible_core", "")], {"os", "ansible_core"}),
    ],
)
def test_facts_are_kept_as_they_are(parts, kept):
    asked = question_of(BOTH, ansible_core="2.19", arch="aarch64")
    left = keep(asked, parts)
    for name, nothing in (
        ("os", None), ("arch", None), ("wheels", None), ("kernels", ()), ("gpus", ()), ("ansible_core", None)
    ):  # fmt: skip
        assert getattr(asked, name)
        assert getattr(left, name) == (getattr(asked, name) if name in kept else nothing), name


@pytest.mark.parametrize(
    ("request_", "kept", "frameworks"),
    [
        (BOTH, ["pytorch"], ("pytorch",)),
        (BOTH, ["tensorflow"], ("tensorflow",)),
        ({}, [], ("pytorch",)),  # planned unasked
        ({"cuda": "12"}, ["cuda"], ("pytorch",)),
        ({"cupy": "13"}, [], ()),  # CuPy stands alone: nobody asked for PyTorch
        ({"pytorch": "2.15", "triton": "3"}, ["triton"], ("pytorch", "triton")),  # it is made for PyTorch
        ({"pytorch": "2.15", "tensorflow": "2.20", "triton": "3"}, ["triton"], ("pytorch", "triton")),
        ({"pytorch": "2.15", "cuda": "12"}, ["cuda"], ()),
    ],
)
def test_frameworks_go_with_their_constraints(request_, kept, frameworks):
    asked = question_of(request_)
    assert keep(asked, [(name, asked.constraints[name]) for name in kept]).frameworks == frameworks


@pytest.mark.parametrize(
    ("request_", "bare"),
    [({"python": "3.10"}, True), ({"cuda": "12"}, False)],
)
def test_a_python_that_is_asked_for_has_an_environment(request_, bare):
    asked = question_of({**request_, "pytorch": "none"})
    assert keep(asked, list(asked.constraints.items())).bare_environment is bare


def test_facts_that_clash_by_themselves_come_first():
    found = blamed(Session(TABLES), question_of({"driver": "470", "cuda": "13.0"}, gpus=["K80", "B200"], kernels=()))
    assert [sorted(name for name, _value in parts) for parts in found[:1]] == [["gpus", "gpus"]]


def test_what_a_host_is_declared_to_have_is_one_of_its_facts():
    request = {"mig": "1g.10gb", "driver": "470", "kernel_modules": "open", "cuda": "13.0", "pytorch": "2.15"}
    found = blamed(
        Session(TABLES), question_of({**request, "tensorflow": "2.20", "python": "3.9", "cudnn": "8.9"}, kernels=())
    )
    assert found[0] == [("gpus", "A40"), ("mig", "1g.10gb")] and len(found) == MOST


def test_each_conflict_is_found_once_and_five_at_most():
    request = {"driver": "470", "kernel_modules": "open", "cuda": "13.0", "pytorch": "2.15", "tensorflow": "2.20"}
    found = blamed(Session(TABLES), question_of({**request, "python": "3.9", "cudnn": "8.9"}, kernels=()))
    assert len({frozenset(parts) for parts in found}) == len(found) == MOST
