# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback progress in runs of ansible-playbook on this machine, in a terminal and without one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.support.command import CHECKOUT
from tests.support.terminal import Terminal

# Ends when the test has seen what it waits for; and when the test did not, or interrupted it, before long.
WAIT = "for _ in $(seq 600); do [ -e {{ inventory_dir }}/{{ item | default('go') }} ] && break; sleep 0.1; done"
LONG = {"name": "Build the {{ thing }}", "ansible.builtin.raw": WAIT, "vars": {"thing": "module"}}
HOSTS = ("gpu-1", "gpu-2")
NAME = "allreduce.gpu.progress"
OURS = "allreduce.gpu.preflight"
# An action that says every 0.3 seconds that it runs, and whether a Beat would.
TALKS = """
import time
from ansible.plugins.action import ActionBase
from ansible_collections.allreduce.gpu.plugins.plugin_utils.node.beat import Beat
class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        for _ in range(10):
            self._display.display(f"at work, beat: {Beat.is_needed}")
            time.sleep(0.3)
        return {}
"""


@pytest.fixture
def run(tmp_path):
    def run(tasks, *options, hosts=HOSTS, terminal=True, term="xterm", play=None, first=(), enabled=True, **size):
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        inventory = {"gpu_nodes": {"hosts": {host: {} for host in hosts}, "vars": local}}
        (tmp_path / "hosts.json").write_text(json.dumps(inventory), "utf-8")
        book = [{"import_playbook": name} for name in first]
        book += [{"name": "Run", "hosts": "all", "gather_facts": False, "tasks": tasks, **(play or {})}]
        (tmp_path / "play.yml").write_text(json.dumps(book), "utf-8")
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"),
            **({"ANSIBLE_CALLBACKS_ENABLED": NAME} if enabled else {}),
            "ANSIBLE_INJECT_FACT_VARS": "false",
            "ANSIBLE_HOME": str(tmp_path / "home"),
            "ALLREDUCE_PROGRESS_THRESHOLD": "0.5",
            "ALLREDUCE_PROGRESS_INTERVAL": "0.1",
            "ANSIBLE_NOCOLOR": "1",
            "TERM": term,
        }
        argv = [sys.executable, "-m", "ansible", "playbook", "-i", "hosts.json", "play.yml", *options]
        if terminal:
            return Terminal(argv, cwd=tmp_path, env=environment, **size)
        return subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    run.go = lambda name="go": (tmp_path / name).touch()
    yield run
    for name in ("go", *HOSTS):
        run.go(name)


def status(rows, *hosts):
    """Return True if the last rows are those of these hosts, with time and task."""
    last = rows[len(rows) - len(hosts) :]
    return [re.sub(r"  \d+s  ", " ", row) for row in last] == [f"{host} Build the module" for host in hosts]


def test_one_line_for_each_host_while_a_task_is_long(run):
    terminal = run([LONG])
    terminal.wait_for(lambda rows: status(rows, *HOSTS) and rows[-2].startswith("gpu-1  2s  "))
    run.go()
    assert terminal.finish() == 0
    assert not any("  2s  " in line for line in terminal.lines()), "the rows are given back"


def test_ansible_s_own_output_is_complete(run):
    """The same lines as without a terminal, though there are more of them than the terminal has rows."""
    many = {"name": "Talk", "ansible.builtin.debug": {"msg": "word {{ item }}"}, "loop": list(range(12))}
    tasks = [many, LONG, many]
    terminal = run(tasks, rows=12, columns=160)
    terminal.wait_for(lambda rows: status(rows, *HOSTS))
    run.go()
    assert terminal.finish() == 0
    plain = run(tasks, terminal=False)
    assert plain.returncode == 0
    # Hosts end in any order, and headings are as wide as the terminal.
    expected = [line.rstrip(" *") for line in plain.stdout.splitlines() if line.strip()]
    assert sorted(line.rstrip(" *") for line in terminal.lines()) == sorted(expected)


def test_lines_without_a_terminal_after_silence(run, monkeypatch):
    monkeypatch.setenv("ALLREDUCE_PROGRESS_SILENCE", "1")
    result = run([{"name": "Wait", "ansible.builtin.raw": "sleep 3"}], terminal=False)
    assert (result.returncode, result.stderr) == (0, "")
    told = [line for line in result.stdout.splitlines() if line.endswith("  Wait")]
    assert {line.split("  ")[0] for line in told} == set(HOSTS)
    assert all(re.fullmatch(r"gpu-[12]  \ds  Wait", line) for line in told)
    assert result.stdout.index("TASK [Wait]") < result.stdout.index(told[0]) < result.stdout.index("PLAY RECAP")


@pytest.mark.parametrize("terminal", [True, False])
def test_playbooks_of_the_collection_have_these_lines_unasked(run, monkeypatch, terminal):
    monkeypatch.setenv("ALLREDUCE_PROGRESS_SILENCE", "1")
    done = run([{"name": "Wait", "ansible.builtin.raw": "sleep 3"}], first=[OURS], enabled=False, terminal=terminal)
    assert (done.finish() if terminal else done.returncode) == 0
    output = done.written.decode() if terminal else done.stdout
    assert re.search(r"^gpu-1  \ds  Wait\r?$", output, re.M), output
    assert "\x1b" not in output and "WARNING" not in output


def test_a_playbook_of_the_user_has_none_unasked(run, monkeypatch):
    monkeypatch.setenv("ALLREDUCE_PROGRESS_SILENCE", "1")
    result = run([{"name": "Wait", "ansible.builtin.raw": "sleep 3"}], enabled=False, terminal=False)
    assert result.returncode == 0 and "gpu-1  " not in result.stdout.partition("PLAY RECAP")[0]


def test_the_rows_of_a_terminal_are_enough(run, monkeypatch):
    monkeypatch.setenv("ALLREDUCE_PROGRESS_SILENCE", "1")
    terminal = run([LONG], first=[OURS])
    terminal.wait_for(lambda rows: status(rows, *HOSTS) and rows[-2].startswith("gpu-1  3s  "))
    run.go()
    assert terminal.finish() == 0
    assert not any(line.endswith("  Build the module") for line in terminal.lines()), terminal.lines()


@pytest.mark.parametrize("how", [{}, {"first": [OURS], "enabled": False}])
def test_what_an_action_says_is_no_silence(run, tmp_path, monkeypatch, how):
    monkeypatch.setenv("ALLREDUCE_PROGRESS_SILENCE", "1")
    (tmp_path / "action_plugins").mkdir()
    (tmp_path / "action_plugins" / "talk.py").write_text(TALKS, "utf-8")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "talk.py").touch()
    result = run([{"name": "Talk", "talk": {}}], terminal=False, **how)
    assert result.returncode == 0, result.stdout
    assert result.stdout.count("at work, beat: False") == 20
    assert not re.search(r"^gpu-\d  \d+s  Talk$", result.stdout, re.M), result.stdout


def test_a_role_that_is_included(run, tmp_path, monkeypatch):
    monkeypatch.setenv("ALLREDUCE_PROGRESS_SILENCE", "1")
    (tmp_path / "roles" / "slow" / "tasks").mkdir(parents=True)
    tasks = [{"name": "Wait", "ansible.builtin.raw": "sleep 3"}]
    (tmp_path / "roles" / "slow" / "tasks" / "main.yml").write_text(json.dumps(tasks), "utf-8")
    result = run([{"name": "Include", "ansible.builtin.include_role": {"name": "slow"}}], terminal=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert "WARNING" not in result.stdout
    assert re.search(r"^gpu-1  \ds  slow : Wait$", result.stdout, re.M)


@pytest.mark.parametrize("options", [{"terminal": False}, {"term": "dumb"}])
def test_nothing_without_a_terminal_before(run, options):
    result = run([{"name": "Wait", "ansible.builtin.raw": "sleep 1"}], **options)
    if options.get("terminal", True):
        assert result.finish() == 0
        output = result.written.decode()
    else:
        assert (result.returncode, result.stderr) == (0, "")
        output = result.stdout
    assert "PLAY RECAP" in output
    assert "\x1b" not in output and "1s" not in output


def test_ctrl_c_gives_the_terminal_back(run):
    terminal = run([LONG])
    terminal.wait_for(lambda rows: status(rows, *HOSTS))
    terminal.press("\x03")
    assert terminal.finish() != 0
    assert not any(row.startswith("gpu-1  ") for row in terminal.rows())
    assert terminal.screen.margins is None, "all rows scroll again"


def test_hosts_that_fail_or_cannot_be_reached_have_no_line(run):
    lost = {
        "name": "Contact",
        "ansible.builtin.raw": "true",
        "vars": {
            "ansible_connection": "{{ 'ssh' if inventory_hostname == 'gpu-2' else 'local' }}",
            "ansible_ssh_executable": "/bin/false",
        },
    }
    fails = {"name": "Refuse", "ansible.builtin.fail": {}, "when": "inventory_hostname == 'gpu-3'"}
    tasks = [{"name": "Settle", "ansible.builtin.raw": "sleep 1"}, lost, fails, LONG]
    terminal = run(tasks, hosts=("gpu-1", "gpu-2", "gpu-3"), play={"strategy": "free"})
    terminal.wait_for(lambda rows: status(rows, "gpu-1") and "gpu" not in rows[-2].split("  ")[0])
    run.go()
    assert terminal.finish() != 0


def test_serial_plays_show_the_hosts_at_work(run):
    one = {**LONG, "ansible.builtin.raw": WAIT.replace("'go'", "inventory_hostname")}
    terminal = run([one], play={"serial": 1})
    terminal.wait_for(lambda rows: status(rows, "gpu-1"))
    run.go("gpu-1")
    terminal.wait_for(lambda rows: status(rows, "gpu-2"))
    run.go("gpu-2")
    assert terminal.finish() == 0


def test_check_mode(run):
    terminal = run([{**LONG, "check_mode": False}], "--check")
    terminal.wait_for(lambda rows: status(rows, *HOSTS))
    run.go()
    assert terminal.finish() == 0


def test_a_narrow_and_low_terminal(run):
    terminal = run([LONG], rows=6, columns=20, hosts=("gpu-1", "gpu-2", "gpu-3"))
    terminal.wait_for(lambda rows: rows[-1] == "2 more hosts at work" and rows[-2].endswith("..."))
    run.go()
    assert terminal.finish() == 0


def test_a_question_is_asked_above_the_lines(run):
    ask = {"name": "Ask", "ansible.builtin.pause": {"prompt": "Sure?"}, "when": "inventory_hostname == 'gpu-1'"}
    terminal = run([ask, {"name": "Show", "ansible.builtin.debug": {"msg": "go on"}}])
    terminal.wait_for(lambda rows: rows[-1].endswith("Ask") and "Sure?:" in rows)
    terminal.press("\r")
    assert terminal.finish() == 0
