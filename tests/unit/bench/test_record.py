# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recorded run says enough to do the same by hand."""

import json
import os
import subprocess
import sys

import pytest

from tests.bench import typed
from tests.support.local_play import CHECKOUT

PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.command:
        argv: [sh, -c, 'cat; echo $WORD']
        stdin: lines
      environment: {WORD: "{{ 'a b' }}"}
    - ansible.builtin.command: {argv: [uname]}
      changed_when: false
    - ansible.builtin.copy:
        content: text
        dest: "{{ playbook_dir }}/copied"
    - ansible.builtin.ping:
"""


@pytest.mark.parametrize("recording", [True, False])
def test_arguments_environment_and_outcome(recording, tmp_path):
    (tmp_path / "play.yml").write_text(PLAY, encoding="utf-8")
    log = tmp_path / "log"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "ANSIBLE_CALLBACK_PLUGINS": str(CHECKOUT / "tests" / "bench" / "callback_plugins"),
        "ANSIBLE_CALLBACKS_ENABLED": "executions",
        "ALLREDUCE_COUNT_LOCAL": "1",
        "ALLREDUCE_EXECUTIONS": str(log),
        **({"ALLREDUCE_RECORD": "1"} if recording else {}),
    }
    host = f"node ansible_connection=local ansible_python_interpreter={sys.executable}\n"
    (tmp_path / "hosts").write_text(host, encoding="utf-8")
    argv = [sys.executable, "-m", "ansible", "playbook", "-i", "hosts", "play.yml"]
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert {row["host"] for row in rows} == {"node"}
    if not recording:
        assert all(set(row) == {"host", "module", "task", "role", "by"} for row in rows)
        return
    assert all(row["seconds"] > 0 for row in rows)
    assert [row["changed"] for row in rows if row["module"].endswith("ping")] == [False]
    copied = str(tmp_path / "copied")
    assert typed.paths(rows) == [copied]
    assert typed.script(rows, {copied: {"content": "text"}}).splitlines() == [
        "set -eu",
        "env 'WORD=a b' sh -c 'cat; echo $WORD' <<'END-OF-FILE'",
        "lines",
        "END-OF-FILE",
        f"install -D -m 0644 /dev/null {copied}",
        f"cat > {copied} <<'END-OF-FILE'",
        "text",
        "END-OF-FILE",
    ]
