# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it, on a recorded tree: a change, check mode, idempotence, and the way back."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import firewall
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.firewall_helper import HOST

COLLECTIONS = str(Path(firewall.__file__).resolve().parents[2] / ".collections")
UNIT = "/etc/systemd/system/allreduce-firewall.service"
LINK = "/etc/systemd/system/multi-user.target.wants/allreduce-firewall.service"
RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
ROLLBACK = {
    "rollback_seconds": 60,
    "rollback_program": [{"path": "/var/lib/allreduce/x/__main__.py", "content": "pass\n"}],
}
WANTED = {
    "owner": "ufw",
    "files": [
        {"path": "/etc/allreduce/firewall.nft", "content": "table inet allreduce {}\n", "mode": "0600"},
        {"path": UNIT, "content": "[Unit]\n"},
        {"path": LINK, "link": UNIT},
    ],
    "values": [{"path": RANGE, "value": "50000 50999"}],
}


def run(root, check=False, **options):
    arguments = {"root": str(root), "_ansible_check_mode": check, "_ansible_diff": True, **options}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.firewall"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )
    return json.loads(done.stdout)


def snapshot(root):
    return {
        str(path.relative_to(root)): os.readlink(path)
        if path.is_symlink()
        else path.is_dir() or path.read_text().rstrip()
        for path in sorted(root.rglob("*"))
    }


@pytest.fixture
def root(tmp_path):
    tree(tmp_path, {**HOST, RANGE: "32768 60999"})
    return tmp_path


def test_change_and_the_way_back(root):
    before = snapshot(root)
    result = run(root, **WANTED)
    assert result["changed"] and not result["findings"], result
    assert [(one["kind"], one["subject"]) for one in result["changes"]] == [
        ("file", "/etc/allreduce/firewall.nft"), ("file", UNIT), ("file", LINK),
        ("file", "/etc/ufw/before.rules"), ("file", "/etc/ufw/before6.rules"), ("value", RANGE),
    ]  # fmt: skip
    assert (root / "etc/allreduce/firewall.nft").stat().st_mode & 0o777 == 0o600
    assert (root / LINK.lstrip("/")).readlink() == Path(UNIT)
    assert run(root, state="absent")["changed"] is True
    assert snapshot(root) == before


def test_change_in_check_mode(root):
    before = snapshot(root)
    result = run(root, check=True, **WANTED)
    assert result["changed"] and snapshot(root) == before
    shown = {one["before_header"]: one["after"] for one in result["diff"]}
    assert shown[UNIT] == "[Unit]\n" and "--mark 0x1000/0x1000" in shown["/etc/ufw/before.rules"]


@pytest.mark.parametrize("check", [False, True])
def test_idempotent(root, check):
    run(root, **WANTED)
    result = run(root, check=check, **WANTED)
    assert (result["changed"], result["changes"], result["diff"]) == (False, [], [])


@pytest.mark.parametrize("check", [False, True])
def test_absent_without_a_record(root, check):
    before = snapshot(root)
    assert run(root, check=check, state="absent")["changed"] is False
    assert snapshot(root) == before


def test_a_change_waits_for_its_confirmation(root):
    assert run(root, **WANTED, **ROLLBACK)["changed"]
    place = root / "var/lib/allreduce/firewall-rollback"
    assert (place / "snapshot.json").stat().st_mode & 0o777 == 0o600
    assert run(root, check=True, state="confirmed")["changed"] and place.exists()
    assert run(root, state="confirmed")["changed"] and not place.exists()
    result = run(root, state="confirmed")
    assert result["failed"] and result["findings"][0]["code"] == "rolled_back"


def test_a_record_that_is_not_ours_is_refused(root):
    tree(root, {"/var/lib/allreduce/firewall.json": '{"format": 9}'})
    result = run(root, state="absent")
    assert result["failed"] and "has format 9; this release reads 1" in result["msg"]


def test_what_the_tree_refuses_is_told_and_taken_back(root):
    (root / RANGE.lstrip("/")).unlink()
    (root / RANGE.lstrip("/")).symlink_to("/proc/version")
    before = snapshot(root)
    result = run(root, **WANTED)
    assert result["failed"] and result["findings"][0]["code"] == "not_set", result
    after = snapshot(root)
    assert {path for path in after if after[path] is not True} == {path for path in before if before[path] is not True}


@pytest.mark.parametrize("wrong", [{"path": "/x"}, {"path": "/x", "content": "", "link": "/y"}])
def test_a_file_is_text_or_a_link(root, wrong):
    assert run(root, owner="ufw", files=[wrong])["failed"]


def test_whose_the_rules_are_has_to_be_said(root):
    assert "owner" in run(root)["msg"]


def test_what_was_applied_is_noted_until_it_is_put_back(root):
    """Module firewall_facts reads this machine only: tests/scenarios/test_72_firewall.py sees that it tells."""
    note = root / "run/allreduce/applied/firewall.json"
    run(root, check=True, applied="d1", **WANTED)
    assert not note.exists()
    run(root, applied="d1", **WANTED, **ROLLBACK)
    assert json.loads(note.read_text())["digest"] == "d1"
    assert run(root, state="confirmed", applied="d2")["changed"]
    assert json.loads(note.read_text())["digest"] == "d1"
    run(root, state="absent", applied="d2")
    assert not note.exists()
