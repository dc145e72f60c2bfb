# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the node is asked about its files, and what is known of them afterwards."""

from __future__ import annotations

import getpass
import grp
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.action import config_files
from ansible_collections.allreduce.gpu.plugins.module_utils.host.config_files import read
from ansible_collections.allreduce.gpu.plugins.module_utils.host.seen_files import expected, name, words
from ansible_collections.allreduce.gpu.tests.support.fake_node import act

ENTRY = {"path": "/etc/x.conf", "content": "a = 1\n"}
GONE = {"path": "/etc/old.conf", "state": "absent"}
BLOCK = {"path": "/etc/hosts", "block": "10.0.0.1 gpu-1"}
OWNED = {**ENTRY, "path": "/home/trainer/.ssh/config", "as_owner": True}
ALL = (ENTRY, GONE, BLOCK, OWNED)
AS_DECLARED = {name(one): expected(one) for one in ALL}


class Node:
    """What is known of a node's files, and the answer of the module there."""

    def __init__(self, known, answer=None, changed=None):
        self.known, self.answer, self.calls, self.changed = known, answer or {}, [], changed or {}

    def state(self):
        return {"package_manager": "apt", "files": self.known, "files_changed": self.changed}

    def execute(self, check, module_name, module_args, task_vars):
        assert module_name == "allreduce.gpu.config_files"
        self.calls.append(dict(module_args))
        return {"changed": False, "changed_paths": [], "diff": [], **self.answer}


def keep(files, known=None, answer=None, changed=None, **more):
    """Return the action's result, and the arguments of the module where it ran."""
    node = Node(known, answer, changed)
    facts = {"gpu_node_state": None} if known is None else {}
    return act(config_files, node, facts, files=files, **more), node.calls


@pytest.mark.parametrize("check", [False, True])
def test_files_that_are_as_declared_cost_no_execution(check):
    result, calls = keep(list(ALL), AS_DECLARED, check=check)
    assert (result["changed"], result["changed_paths"], result["diff"], calls) == (False, [], [], [])


@pytest.mark.parametrize(
    ("files", "known", "more"),
    [
        ([ENTRY], None, {}),
        ([ENTRY], {}, {}),
        ([ENTRY, GONE], {GONE["path"]: "absent"}, {}),
        ([{**ENTRY, "content": "a = 2\n"}], AS_DECLARED, {}),
        ([{**ENTRY, "mode": "0600"}], AS_DECLARED, {}),
        ([ENTRY, {**BLOCK, "block": "10.0.0.2 gpu-2"}], AS_DECLARED, {}),
        ([{**BLOCK, "block_name": "other"}], AS_DECLARED, {}),
        ([{**ENTRY, "as_owner": True}], AS_DECLARED, {}),
        # Who declares the same twice is answered by the module.
        ([ENTRY, ENTRY], AS_DECLARED, {}),
        ([{"content": "a"}], AS_DECLARED, {}),
        ([{**ENTRY, "path": 1}], AS_DECLARED, {}),
        ([ENTRY], AS_DECLARED, {"secrets": ["a"]}),
        ([ENTRY], AS_DECLARED, {"no_log": True}),
        ([ENTRY], AS_DECLARED, {"delegate_to": "gpu-2"}),
        ([ENTRY], AS_DECLARED, {"unknown": True}),
        ([], AS_DECLARED, {}),
        ("nonsense", AS_DECLARED, {}),
        (["nonsense"], AS_DECLARED, {}),
    ],
)
def test_otherwise_the_node_is_asked(files, known, more):
    _result, calls = keep(files, known, **more)
    assert len(calls) == 1 and calls[0]["files"] == files


@pytest.mark.parametrize(
    ("files", "more", "noted"),
    [
        (list(ALL), {}, AS_DECLARED),
        ([BLOCK], {}, {"/etc/hosts [allreduce.gpu]": expected(BLOCK)}),
        ([ENTRY], {"secrets": ["a"]}, None),
        ([ENTRY], {"no_log": True}, None),
        ([ENTRY], {"delegate_to": "gpu-2"}, None),
    ],
)
def test_paths_are_noted_where_the_fact_may_tell_of_them(files, more, noted):
    _result, (given,) = keep(files, {}, **more)
    assert given.get("noted") == noted


def test_what_the_module_saw_is_known_from_then_on():
    seen = {ENTRY["path"]: expected(ENTRY)}
    answer = {"changed": True, "changed_paths": [ENTRY["path"]], "seen": seen}
    changed = {"/etc/y": "directory", ENTRY["path"]: expected(ENTRY)}
    result, _calls = keep([ENTRY], {"/etc/y": "absent", ENTRY["path"]: "absent"}, answer, changed)
    assert (result["changed"], result["changed_paths"]) == (True, [ENTRY["path"]])
    state = result["ansible_facts"]["gpu_node_state"]
    assert state == {
        "package_manager": "apt",
        "files": {"/etc/y": "absent", **seen},
        "files_changed": {"/etc/y": "directory"},
    }


def test_what_somebody_wrote_by_hand_and_is_asked_for_now_is_noted():
    _result, calls = keep([ENTRY], AS_DECLARED, changed={ENTRY["path"]: "absent"})
    assert len(calls) == 1 and calls[0]["noted"] == {ENTRY["path"]: expected(ENTRY)}


def test_a_node_that_nobody_measured_gets_no_half_of_a_fact():
    result, _calls = keep([ENTRY], None, answer={"seen": AS_DECLARED})
    assert "ansible_facts" not in result


def test_a_failure_is_the_module_s():
    result, _calls = keep([ENTRY], answer={"failed": True, "msg": "Cannot keep the files as declared: x."})
    assert result["failed"] and result["msg"] == "Cannot keep the files as declared: x."


def test_what_is_on_the_disk_compares_equal(tmp_path):
    mine = {"owner": getpass.getuser(), "group": grp.getgrgid(os.getgid()).gr_name}
    entry = {"path": str(tmp_path / "x"), "content": "a = 1\n", "mode": "0600", **mine}
    (tmp_path / "x").write_text(entry["content"], encoding="utf-8")
    (tmp_path / "x").chmod(0o600)
    assert keep([entry], {entry["path"]: words(read(entry["path"]))})[1] == []
    assert len(keep([{**entry, "content": "a = 2\n"}], {entry["path"]: words(read(entry["path"]))})[1]) == 1
