# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a scheduler's program is told, and when that is left to a person."""

import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import hook
from ansible_collections.allreduce.gpu.plugins.module_utils.health.program_options import DEFAULTS

NOW = 1e9
HOUR = 3600
OPTIONS = {**DEFAULTS, "hook": "/usr/local/sbin/tell", "hook_mode": "act"}
WELL, RESET = ("ok", "none"), ("failed", "reset")


def decided(before, after, acts=(), **options):
    state = {"verdict": before[0], "action": before[1], "acts": list(acts)}
    return hook.decide(state, {"verdict": after[0], "action": after[1]}, {**OPTIONS, **options}, NOW)


@pytest.mark.parametrize(("before", "after", "acts", "outcome"), [
    (WELL, RESET, [], "call"),
    ((None, None), RESET, [], "call"),
    (RESET, WELL, [NOW - 60] * 5, "call"),  # what is well again is told, whatever was before
    (RESET, ("failed", "reboot"), [], "call"),
    (WELL, RESET, [NOW - HOUR] * 2, "call"),
    (WELL, RESET, [NOW - HOUR] * 3, "held"),
    (WELL, RESET, [NOW - 30 * HOUR] * 4, "call"),
    (WELL, RESET, [NOW - 30 * HOUR] * 5, "held"),
    (WELL, RESET, [NOW - 8 * 24 * HOUR] * 9, "call"),
    (WELL, ("degraded", "monitor"), [NOW - HOUR] * 9, "call"),
])  # fmt: skip
def test_a_change_is_told_within_the_budget(before, after, acts, outcome):
    assert decided(before, after, acts)["outcome"] == outcome


@pytest.mark.parametrize("before", [WELL, RESET])
def test_no_change_is_not_told(before):
    assert decided(before, before) is None


def test_without_a_first_run_a_healthy_node_is_no_change():
    assert decided((None, None), WELL) is None


def test_without_a_program_nothing_is_told():
    assert decided(WELL, RESET, hook="") is None


def test_in_shadow_it_is_said_what_would_be_done():
    found = decided(WELL, RESET, hook_mode="shadow")
    assert found["outcome"] == "shadow" and found["acts"] == [NOW]
    assert "would call /usr/local/sbin/tell" in hook.sentence(found)


def test_shadow_is_what_nobody_chose():
    assert DEFAULTS["hook_mode"] == "shadow"


def test_what_is_held_back_does_not_count():
    acts = [NOW - HOUR] * 3
    assert decided(WELL, RESET, acts)["acts"] == acts


@pytest.mark.parametrize(("script", "ending"), [("test -e $1", "done"), ("exit 3", "exit 3"), ("sleep 60", "timeout")])
def test_a_program_is_called_with_the_document(tmp_path, script, ending):
    program = tmp_path / "tell"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    assert hook.call(str(program), str(program), 1) == ending


def test_a_program_that_is_not_there_has_failed(tmp_path):
    assert hook.call(str(tmp_path / "none"), os.devnull, 1) == "failed"
