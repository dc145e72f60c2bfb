# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup answers in the shape that config_files takes, and refuses in one sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

COLLECTIONS = Path(__file__).resolve().parents[4] / ".collections"


def asked(term: str) -> subprocess.CompletedProcess:
    question = "{{ query('allreduce.gpu.node_program', '" + term + "', directory='/opt/x') | to_json }}"
    command = [sys.executable, "-m", "ansible", "adhoc", "localhost", "-m", "ansible.builtin.debug", "-a"]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
    arguments = json.dumps({"msg": question})
    return subprocess.run([*command, arguments], env=environment, capture_output=True, text=True, check=False)


def test_files_of_a_program():
    process = asked("machine.gpu_fact_program")
    assert process.returncode == 0, process.stdout + process.stderr
    files = json.loads(json.loads(process.stdout.partition("=> ")[2])["msg"])
    assert {frozenset(file) for file in files} == {frozenset({"path", "content"})}
    assert "/opt/x/__main__.py" in [file["path"] for file in files]


def test_a_program_that_there_is_not():
    process = asked("nothing")
    assert process.returncode != 0
    assert "There is no module_utils file nothing.py" in process.stdout + process.stderr
