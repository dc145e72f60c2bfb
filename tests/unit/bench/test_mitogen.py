# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run under Mitogen's strategy is seen to be one, and refused where it is not."""

import json
import os
import subprocess
import sys

import pytest

from tests.bench import mitogen
from tests.bench.measure import Cost
from tests.support.local_play import CHECKOUT

PLAY = """
- hosts: all
  gather_facts: false
  {strategy}
  tasks:
    - ansible.builtin.ping:
    - ansible.builtin.copy: {{content: text, dest: "{{{{ playbook_dir }}}}/copied"}}
"""


def run(directory, strategy):
    """Return what the callback wrote about a play on this machine, with Mitogen's strategy in the environment."""
    (directory / "play.yml").write_text(PLAY.format(strategy=strategy), encoding="utf-8")
    host = f"node ansible_connection=local ansible_python_interpreter={sys.executable}\n"
    (directory / "hosts").write_text(host, encoding="utf-8")
    log = directory / "log"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        **mitogen.variables(),
        "ANSIBLE_CALLBACK_PLUGINS": str(CHECKOUT / "tests" / "bench" / "callback_plugins"),
        "ANSIBLE_CALLBACKS_ENABLED": "executions",
        "ALLREDUCE_COUNT_LOCAL": "1",
        "ALLREDUCE_EXECUTIONS": str(log),
    }
    argv = [sys.executable, "-m", "ansible", "playbook", "-i", "hosts", "play.yml"]
    done = subprocess.run(argv, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("strategy", "sender"), [("", "mitogen"), ("strategy: linear", "ansible")])
def test_who_sends_the_modules(strategy, sender, tmp_path):
    rows = run(tmp_path, strategy)
    assert [row["module"].rpartition(".")[2] for row in rows] == ["ping", "stat", "copy"]
    assert {row["by"] for row in rows} == {sender}


def sent(senders):
    return [{"task": task, "by": sender} for task, sender in senders.items()]


@pytest.mark.parametrize(
    ("senders", "refusal"),
    [
        ({"b": "ansible", "a": "ansible", "c": "mitogen"}, "not in use: a, b$"),
        ({}, "not in use: no module was sent$"),
    ],
)
def test_refuse_another_strategy(senders, refusal):
    with pytest.raises(RuntimeError, match=refusal):
        mitogen.refuse_others(sent(senders))


def test_take_what_mitogen_sent(monkeypatch, tmp_path):
    cost = Cost(1.0, 1.0, actions=sent({"a": "mitogen", "b": "mitogen"}))
    given = []
    monkeypatch.setattr(mitogen, "playbook", lambda *args, **options: given.append((args, options)) or cost)
    assert mitogen.site(tmp_path, "-e", "x=1") is cost
    [(arguments, options)] = given
    assert arguments == ("site", tmp_path, "-e", "x=1")
    assert options["variables"]["ANSIBLE_STRATEGY"] == "mitogen_linear"
    cost.actions[0]["by"] = "ansible"
    with pytest.raises(RuntimeError, match="not in use: a$"):
        mitogen.site(tmp_path)


def test_refuse_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(mitogen, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="mitogen is not installed"):
        mitogen.variables()
