# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What SELinux keeps a node from: its mode, its booleans, and what is refused for their sake."""

import functools

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import Boolean, Selinux
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift import selinux as judge
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import Problem
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from hypothesis import given
from hypothesis import strategies as st

NAMES = ("allow_execmem", "deny_execmem", "deny_ptrace", "secure_mode", "secure_mode_insmod")
MODES = ("enforcing", "permissive", "disabled", None)


def node(mode="enforcing", on=(), configured="enforcing", pending=()):
    """A node; on: the booleans whose value hinders something, which for allow_execmem is off."""
    values = {name: (name in on) is not (name == "allow_execmem") for name in NAMES}
    return Selinux(mode, configured, {name: Boolean(one, one is not (name in pending)) for name, one in values.items()})


@functools.cache
def stack():
    return resolve({"os": "rocky 9", "gpus": ["A40"], "request": {}})["stack"]


def state(mode="enforcing", on=("secure_mode_insmod",), loaded=None):
    booleans = {name: {"active": name in on, "pending": name in on} for name in NAMES}
    return {"selinux": {"mode": mode, "configured": mode, "booleans": booleans}, "driver": {"loaded": loaded}}


@pytest.mark.parametrize(
    ("mode", "configured", "subjects"),
    [
        ("enforcing", "enforcing", []),
        ("permissive", "enforcing", ["permissive"]),
        ("disabled", "enforcing", ["disabled"]),
        (None, "enforcing", []),
        ("permissive", "permissive", []),
        ("enforcing", "permissive", []),
        ("disabled", "disabled", []),
        ("permissive", None, []),
    ],
)
def test_only_a_mode_that_falls_short_of_its_configuration_is_a_problem(mode, configured, subjects):
    assert [one.subject for one in judge.mode_problems(node(mode, configured=configured))] == subjects


@pytest.mark.parametrize(
    ("selinux", "loads", "problems", "notes"),
    [
        (node(), True, [], []),
        (node(on=["secure_mode_insmod"]), True, ["secure_mode_insmod"], []),
        (node(on=["secure_mode_insmod"]), False, [], ["secure_mode_insmod"]),
        (node(on=["deny_execmem"]), False, ["deny_execmem"], []),
        (node(on=["allow_execmem"]), False, ["allow_execmem"], []),
        (node(on=["deny_ptrace", "secure_mode"]), True, [], ["deny_ptrace", "secure_mode"]),
        (node("permissive", on=["deny_execmem", "secure_mode_insmod"]), True, [], ["deny_execmem", "secure_mode_insmod"]),
        (node(pending=["deny_execmem"]), True, [], ["deny_execmem"]),
    ],
    ids=["off", "no modules", "driver is loaded", "no code", "no code, in the reference policy", "limits", "permissive", "pending"],
)  # fmt: skip
def test_a_boolean_breaks_the_job_or_is_told(selinux, loads, problems, notes):
    assert [one.subject for one in judge.boolean_problems(selinux, loads)] == problems
    assert [one.subject for one in judge.boolean_notes(selinux, loads)] == notes


@given(st.sampled_from(MODES), st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)), st.booleans())
def test_every_boolean_that_hinders_is_told_once(mode, on, pending, loads):
    selinux = node(mode, on, pending=pending)
    problems, notes = judge.boolean_problems(selinux, loads), judge.boolean_notes(selinux, loads)
    said = [one.subject for one in problems + notes if one.code == "selinux_boolean"]
    assert sorted(said) == sorted(on)
    assert {one.subject for one in notes if one.code == "selinux_pending"} == pending
    assert mode == "enforcing" or not problems


NO_MODULES = [Problem("selinux_no_modules", "secure_mode_insmod")]


@pytest.mark.parametrize(
    ("plan", "found", "variables", "expected"),
    [
        (stack(), state(), {}, NO_MODULES),
        (stack(), state(loaded="580.95.05"), {}, []),
        (stack(), state("permissive"), {}, []),
        (stack(), state(on=NAMES[:3]), {}, []),
        (stack(), {}, {}, []),
        (stack(), {"selinux": None}, {}, []),
        ({}, state(), {}, []),
        (stack(), state(), {"nvidia_driver_state": "absent"}, []),
        ({**stack(), "gpus": []}, state(), {}, []),
        ({**stack(), "gpus": []}, state(), {"nvidia_driver_without_gpu": True}, NO_MODULES),
        ({**stack(), "driver": {**stack()["driver"], "source": "vendor"}}, state(), {}, []),
    ],
)
def test_an_installation_is_refused_whose_driver_would_not_load(plan, found, variables, expected):
    assert judge.refusals(plan, found, variables) == expected
