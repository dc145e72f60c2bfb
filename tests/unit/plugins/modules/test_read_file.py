# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it: it reads no more than its limit, and waits for nothing."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import read_file

COLLECTIONS = str(Path(read_file.__file__).resolve().parents[2] / ".collections")


def run(path, **options):
    given = {"path": str(path), **options}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.read_file",
         json.dumps({"ANSIBLE_MODULE_ARGS": given})],
        capture_output=True, text=True, check=False, timeout=20, env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.fixture
def file(tmp_path):
    (tmp_path / "file").write_bytes(b"first\nl\xffst\n")
    return tmp_path / "file"


@pytest.mark.parametrize("check", [False, True])
def test_the_content_of_a_file(file, check):
    answer = run(file, limit=11, _ansible_check_mode=check)
    assert base64.b64decode(answer["content"]) == file.read_bytes()
    assert answer["changed"] is False


def test_a_link_is_followed(file):
    (file.parent / "link").symlink_to(file)
    assert base64.b64decode(run(file.parent / "link")["content"]) == file.read_bytes()


def test_more_than_the_limit_is_refused(file):
    assert run(file, limit=10)["msg"] == f"{file} has more than 10 bytes"


def test_what_never_ends_is_refused(tmp_path):
    """Ten gibibytes that take no room."""
    with (tmp_path / "file").open("wb") as stream:
        stream.truncate(10 << 30)
    answer = run(tmp_path / "file")
    assert answer["failed"] and "has more than 8388608 bytes" in answer["msg"]


def test_the_end_of_a_large_file(file):
    assert base64.b64decode(run(file, limit=5, end=True)["content"]) == file.read_bytes()[-5:]


def test_nothing_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in run(tmp_path / "pipe")["msg"]
    assert run(tmp_path / "absent")["failed"]
