# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role stage and its playbook on this machine: one execution, and what is refused before it."""

import getpass
import hashlib
import json
import os

import pytest

from tests.support.local_play import run_roles


@pytest.fixture
def place(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "one.tar").write_bytes(b"1")
    line = f"{hashlib.sha256(b'1').hexdigest()}  one.tar\n"
    (tmp_path / "source" / "SHA256SUMS").write_text(line)
    return tmp_path


def play(place, *options, **variables):
    given = {
        "stage_name": "set", "stage_source": str(place / "source"), "stage_directory": str(place / "scratch"),
        "stage_needs_mount": False, "stage_owner": getpass.getuser(), **variables,
    }  # fmt: skip
    (place / "executions.jsonl").unlink(missing_ok=True)
    return run_roles(place, ["stage"], {"gpu_node": {}}, "-e", json.dumps(given), *options)


def modules(run):
    return [row["module"].rpartition(".")[2] for row in run.executions if row["role"]]


def test_there_once_and_back(place):
    first = play(place)
    assert first.status == 0 and modules(first) == ["stage"] and "changed=1" in first.output, first.output
    assert (place / "scratch" / "set" / "one.tar").read_bytes() == b"1"
    assert "changed=0" in play(place).output
    assert "changed=1" in play(place, stage_state="absent", stage_source="").output
    assert os.listdir(place / "scratch") == []


def test_what_would_be_copied_is_shown(place):
    run = play(place, "--check", "--diff")
    assert run.status == 0 and "+1 of 1 files copied, 1 bytes" in run.output, run.output
    assert os.listdir(place / "scratch") == []


@pytest.mark.parametrize("variables", [{"stage_name": ""}, {"stage_source": ""}])
def test_what_is_to_be_staged_must_be_said(place, variables):
    run = play(place, **variables)
    assert run.status != 0 and modules(run) == [] and "; set both." in run.output


@pytest.mark.parametrize("needs_mount", [True, "yes"])
def test_a_scratch_that_is_not_mounted_is_not_filled(place, needs_mount):
    run = play(place, stage_needs_mount=needs_mount)
    assert run.status != 0 and "set is not staged: nothing is mounted at" in run.output
    assert os.listdir(place / "scratch") == []
