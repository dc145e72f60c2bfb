# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the controller, written by plays whose hosts nobody can reach."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.command import CHECKOUT

TEXT = '{"a": [1, null]}\n'  # looks like a dictionary to Ansible


def played(place, path, *options, text=TEXT):
    """Exit status and output of a play in which one of two hosts writes a file."""
    task = {"allreduce.gpu.controller_files": {"files": [{"path": str(path), "content": text}]}, "run_once": True}
    (place / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task]}]), "utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"), "COLUMNS": "400"}
    command = [
        sys.executable,
        "-m",
        "ansible",
        "playbook",
        "-i",
        "192.0.2.1,192.0.2.2,",
        "--diff",
        *options,
        "play.yml",
    ]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_written_once_with_its_directory(tmp_path):
    path = tmp_path / "new" / "lock.json"
    status, said = played(tmp_path, path, "--check")
    assert (status, "changed=1" in said, path.parent.exists()) == (0, True, False), said

    before = os.umask(0o077)
    try:
        status, said = played(tmp_path, path)
    finally:
        os.umask(before)
    assert (status, "changed=1" in said, "+{" in said) == (0, True, True), said
    assert (path.read_text(), path.stat().st_mode & 0o777, os.listdir(path.parent)) == (TEXT, 0o644, ["lock.json"])

    status, said = played(tmp_path, path)
    assert (status, "changed=0" in said) == (0, True), said


def test_a_place_that_cannot_be_written_is_told_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    status, said = played(tmp_path, tmp_path / "file" / "lock.json")
    assert status == 2
    assert (
        f"{tmp_path}/file/lock.json was not written (Not a directory); correct its permissions, or choose another place."
        in said
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_full_disk_leaves_the_former_file(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", place], check=False).returncode:
        pytest.skip("this machine does not let us mount")
    try:
        (place / "lock.json").write_text("former")
        status, said = played(tmp_path, place / "lock.json", text="x" * (64 << 10))
        assert status == 2
        assert f"{place}/lock.json was not written, as its disk is full (" in said
        assert "KiB are free); free some space there and run this again." in said
        assert ((place / "lock.json").read_text(), os.listdir(place)) == ("former", ["lock.json"])
    finally:
        subprocess.run(["umount", place], check=True)
