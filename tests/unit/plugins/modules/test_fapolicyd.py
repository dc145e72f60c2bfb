# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four cases of the module as Ansible runs it, for the rules and for their removal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import fapolicyd as core
from ansible_collections.allreduce.gpu.plugins.modules import fapolicyd

COLLECTIONS = str(Path(fapolicyd.__file__).resolve().parents[2] / ".collections")


def run(root, check=False, state="present"):
    arguments = {"root": str(root), "state": state, "_ansible_check_mode": check, "_ansible_diff": True}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.fapolicyd"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )
    return json.loads(done.stdout)


def compile_rules(root):
    """As fagenrules does, which the module leaves out below another root."""
    place = root / core.COMPILED.lstrip("/")
    files = sorted((root / core.PATH.lstrip("/")).parent.glob("*.rules"))
    place.write_text("\n".join(line for path in files for line in core.lines(path.read_text())))


@pytest.fixture
def root(tmp_path):
    place = tmp_path / core.PATH.lstrip("/")
    place.parent.mkdir(parents=True)
    (place.parent / "90-deny-execute.rules").write_text("deny_audit perm=execute all : all\n")
    compile_rules(tmp_path)
    return tmp_path


@pytest.fixture
def rules(root):
    return root / core.PATH.lstrip("/")


def test_change(root, rules):
    before = os.umask(0o077)  # as hardened hosts have it
    try:
        assert run(root)["steps"] == ["write", "load"]
    finally:
        os.umask(before)
    assert rules.read_text() == core.RULES and rules.stat().st_mode & 0o777 == 0o644


def test_change_in_check_mode(root, rules):
    result = run(root, check=True)
    assert result["changed"] and result["diff"]["after"] == core.RULES and not rules.exists()


@pytest.mark.parametrize("check", [False, True])
def test_idempotent(root, check):
    run(root)
    compile_rules(root)
    result = run(root, check)
    assert (result["changed"], result["steps"]) == (False, [])
    assert result["diff"]["before"] == result["diff"]["after"]


def test_rules_that_were_not_loaded_are(root):
    run(root)
    assert run(root)["steps"] == ["load"]


@pytest.mark.parametrize("check", [False, True])
def test_removal(root, rules, check):
    run(root)
    compile_rules(root)
    assert run(root, check, "absent")["steps"] == ["remove", "load"]
    assert rules.exists() is check


@pytest.mark.parametrize("check", [False, True])
def test_removal_is_idempotent(root, check):
    assert run(root, check, "absent")["changed"] is False


def test_rules_in_one_file_are_refused(root, rules):
    (root / core.OLD_RULES.lstrip("/")).write_text("allow perm=any all : all\n")
    result = run(root)
    assert result["failed"] and "split it up" in result["msg"] and not rules.exists()
