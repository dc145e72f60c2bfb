# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python of a hostile lab host: it lies where the round says so, and notes it; everything else the real one does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.lab import hostile
from tests.lab.hostile import lies
from tests.lab.hostile.liar import module_of

MODULE = """
def _ansiballz_main(module_fqn): print('{"changed": false, "ansible_facts": {"ansible_nodename": "honest", "a": {"b": 1}}}')
_ansiballz_main(module_fqn='%s')
"""
SETUP = MODULE % "ansible.legacy.setup"
TABLE = """
from collections import namedtuple
from real import *
ROUNDS = {"one": Round("plan", "failed", [
    Lie("name", SETUP, fact("nodename", "x,*")), Lie("nested", SETUP, puts({"ansible_facts.a.b": DEEP})), Lie("text", "command", says("no " + BYTES)),
    Lie("selected", STATE, says("{}"), '"state": ?"present"'),
])}
"""


@pytest.fixture
def python(tmp_path):
    """Run the liar with arguments and input: its output, and the lies that it has noted."""
    shutil.copy(lies.__file__, tmp_path / "real.py")
    (tmp_path / "lies.py").write_text(TABLE, encoding="utf-8")
    (tmp_path / "round").write_text("one", encoding="utf-8")

    def run(*arguments, said=""):
        argv = [sys.executable, "-IS", str(hostile.HERE / "liar.py"), *arguments]
        env = {**os.environ, "HOSTILE_HOME": str(tmp_path)}
        done = subprocess.run(argv, input=said.encode(), capture_output=True, check=True, env=env)
        taken = (tmp_path / "taken").read_text(encoding="utf-8").split() if (tmp_path / "taken").exists() else []
        return done.stdout, taken

    return run


@pytest.mark.parametrize(
    ("source", "module"),
    [
        (MODULE % "ansible.modules.setup", "setup"),
        (SETUP, "setup"),
        (MODULE % "ansible_collections.allreduce.gpu.plugins.modules.node_state", lies.STATE),
        ("import ansible.modules.setup", None),
        ("print(1)", None),
    ],
)
def test_the_module_of_a_payload(source, module):
    assert module_of(source.encode()) == module


def test_lies_of_one_module_are_put_into_its_real_answer(python):
    output, taken = python(said=SETUP)
    assert taken == ["name", "nested"]
    text = output.decode()
    assert '"ansible_nodename": "x,*"' in text and '"changed": false' in text
    assert '"b": ' + "[" * 100_000 in text


def test_a_module_in_a_file(python, tmp_path):
    path = tmp_path / "AnsiballZ_setup.py"
    path.write_text(SETUP, encoding="utf-8")
    assert python(str(path))[1] == ["name", "nested"]


def test_an_answer_that_is_no_text(python):
    output, taken = python(said=MODULE % "ansible.legacy.command")
    assert (output, taken) == (b"no \xff\xfe\xc3(\n", ["text"])


@pytest.mark.parametrize(("state", "told"), [("present", ["selected"]), ("absent", [])])
def test_arguments_select(python, state, told):
    said = MODULE % "ansible_collections.allreduce.gpu.plugins.modules.node_state" + f'# {{"state": "{state}"}}\n'
    assert python(said=said)[1] == told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["-c", "import sys; print(sys.argv)"], ""), ([], "import sys; print(sys.argv)"), (["-"], "print(['-'])")],
)
def test_what_is_no_module_is_done_by_the_real_one(python, arguments, said):
    output, taken = python(*arguments, said=said)
    assert taken == []
    assert output.startswith(b"['")


def test_without_a_round_it_is_honest(python, tmp_path):
    (tmp_path / "round").unlink()
    output, taken = python(said=SETUP)
    assert json.loads(output)["ansible_facts"]["ansible_nodename"] == "honest"
    assert taken == []


def test_the_table():
    """At least 60 kinds, each in one round; what is left as it is would be no lie."""
    told = [lie for one in lies.ROUNDS.values() for lie in one.lies]
    assert len({lie.name for lie in told}) == len(told) >= 60
    assert {one.outcome for one in lies.ROUNDS.values()} == {"failed", "left_out", "believed"}
    assert {one.playbook for one in lies.ROUNDS.values()} == {"plan", "site", "verify", "train"}
    for lie in told:
        said = lie.change(lambda: {"ansible_facts": {}})
        assert lies.encode(said) != lies.encode({"ansible_facts": {}}) or lie.change is lies.plants, lie.name
