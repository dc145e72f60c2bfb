# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Test what CI prints last: counts, and which tests failed and why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SUMMARY = Path(__file__).parents[3] / ".ci" / "summary"
PASSED = '<testcase classname="c" name="good"/>'
FAILED = '<testcase classname="c" name="bad"><failure message="assert 1 == 2&#10;more">x</failure></testcase>'
BROKEN = '<testcase classname="c" name="setup"><error message="no such fixture">x</error></testcase>'


def suite(*cases):
    failures, errors = cases.count(FAILED), cases.count(BROKEN)
    return (
        f'<testsuites><testsuite name="unit" tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="0">'
        + "".join(cases)
        + "</testsuite></testsuites>"
    )


CASES = [
    pytest.param("success", [PASSED], 0, ["1 passed, 0 failed, 0 skipped"], id="green"),
    pytest.param(
        "failed", [PASSED, FAILED], 1, ["unit: c.bad: assert 1 == 2", "1 passed, 1 failed, 0 skipped"], id="failure"
    ),
    pytest.param(
        "failed", [BROKEN], 1, ["unit: c.setup: no such fixture", "0 passed, 1 failed, 0 skipped"], id="error"
    ),
    pytest.param("failed", [PASSED], 1, ["1 passed, 1 failed, 0 skipped"], id="session failed beside its tests"),
    pytest.param("aborted", [PASSED], 1, ["1 passed, 1 failed, 0 skipped"], id="session ended itself"),
    pytest.param("skipped", [PASSED], 0, ["1 passed, 0 failed, 1 skipped"], id="session left out"),
    pytest.param("failed", [FAILED] * 42, 1, ["and 2 more", "0 passed, 42 failed, 0 skipped"], id="many failures"),
]


@pytest.mark.parametrize(("result", "cases", "status", "end"), CASES)
def test_end_of_output(tmp_path, result, cases, status, end):
    (tmp_path / "nox.json").write_text(json.dumps({"sessions": [{"name": "unit", "result": result}]}))
    (tmp_path / "unit.xml").write_text(suite(*cases))
    run = subprocess.run([sys.executable, str(SUMMARY), str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.returncode == status, run.stderr
    assert run.stdout.splitlines()[-len(end) :] == end


def test_nothing_ran(tmp_path):
    run = subprocess.run([sys.executable, str(SUMMARY), str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout == "0 passed, 0 failed, 0 skipped\n"


def test_lanes_are_added_up(tmp_path):
    for lane, session in (("code", "unit"), ("hosts", "molecule")):
        report = {"sessions": [{"name": session, "result": "success"}]}
        (tmp_path / f"nox-{lane}.json").write_text(json.dumps(report))
        (tmp_path / f"{session}.xml").write_text(suite(PASSED, PASSED))
    run = subprocess.run([sys.executable, str(SUMMARY), str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.stdout.splitlines()[-1] == "4 passed, 0 failed, 0 skipped"


def test_a_session_that_fails_without_a_test_says_its_last_lines(tmp_path):
    sessions = [{"name": "lint", "result": "success"}, {"name": "galaxy", "result": "failed"}]
    (tmp_path / "nox-code.json").write_text(json.dumps({"sessions": sessions}))
    printed = [f"line {number}" for number in range(20)]
    log = ["nox > Running session lint", "quiet", "nox > Session lint was successful in 4 seconds."]
    log += ["nox > Running session galaxy", *printed, "nox > Session galaxy failed.", "nox > Running session unit"]
    (tmp_path / "code.log").write_text("\n".join(log))
    run = subprocess.run([sys.executable, str(SUMMARY), str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.stdout.splitlines()[2:] == [f"galaxy: {line}" for line in printed[5:]] + [
        "1 passed, 1 failed, 0 skipped"
    ]
