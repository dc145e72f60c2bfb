# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was applied still holds, or does not: with the plans of all modules that apply settings, on recorded trees."""

import json
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import applied, firewall, qos, rdma, tuning

FILE = {"path": "/etc/x.conf", "content": "a = \udcff\n", "mode": "0644"}
LINK = {"path": "/etc/y.conf", "link": "/etc/x.conf"}
FILES = [FILE, LINK]
VALUES = [{"path": "/proc/sys/vm/swappiness", "value": "10"}]
NOTHING = {"files": [], "values": []}
MODULES = {
    "firewall": (firewall.Machine, firewall.settle, {"owner": "nftables", "disabled": False}),
    "qos": (qos.Machine, qos.settle, {"interfaces": [], "table": "", "digest": None}),
    "rdma": (tuning.Machine, rdma.settle, {"modules": [], "ports": []}),
    "tuning": (tuning.Machine, tuning.settle, {"interfaces": [], "arguments": [], "profile": ""}),
}
HAS_VALUES = [name for name in MODULES if name != "qos"]


def declared(digest):
    """Return the options of a module that is given this digest."""
    return {"state": "present", "applied": digest}


class Node:
    """A recorded tree to which one of the modules applies files and values."""

    def __init__(self, place, name):
        self.place, self.name, self.tree = place, name, FileTree(str(place))
        self.kind, self._settle, more = MODULES[name]
        self.wanted = {"files": FILES, **more, **({"values": VALUES} if name in HAS_VALUES else {})}
        place.joinpath("proc/sys/vm").mkdir(parents=True)
        place.joinpath("proc/sys/vm/swappiness").write_text("60\n")

    def settle(self, wanted, check=True):
        machine = self.kind(self.tree, lambda path, content: self.place.joinpath(path).write_bytes(content))
        return self._settle(machine, wanted, check=check)

    def apply(self, digest="d1"):
        answer = self.settle(self.wanted, check=False)
        assert answer["changed"] and not answer["problems"]
        applied.note(self.tree, self.name, declared(digest), self.wanted)

    def holding(self):
        return applied.holding(self.tree, self.name, self.settle)


@pytest.fixture(params=sorted(MODULES))
def node(request, tmp_path):
    return Node(tmp_path, request.param)


def test_what_was_applied_holds_until_something_differs(node):
    assert node.holding() is None
    node.apply()
    assert node.holding() == "d1"
    node.place.joinpath("etc/x.conf").write_text("a = 2\n")
    assert node.holding() is None
    node.settle(node.wanted, check=False)
    assert node.holding() == "d1"
    os.unlink(node.place / "etc/y.conf")
    assert node.holding() is None


@pytest.mark.parametrize("name", HAS_VALUES)
def test_a_value_counts_too(tmp_path, name):
    node = Node(tmp_path, name)
    node.apply()
    tmp_path.joinpath("proc/sys/vm/swappiness").write_text("60\n")
    assert node.holding() is None


def test_what_is_noted_is_only_looked_at(node):
    node.apply()
    path = node.place / "etc/x.conf"
    path.write_text("a = 2\n")
    node.holding()
    assert path.read_text() == "a = 2\n"


@pytest.mark.parametrize("options", [{"state": "present", "applied": None}, {"state": "absent", "applied": "d1"}])
def test_what_is_forgotten_does_not_hold(node, options):
    node.apply()
    applied.note(node.tree, node.name, options, node.wanted)
    assert node.holding() is None
    applied.note(node.tree, node.name, options, node.wanted)


def test_the_last_word_counts(node):
    node.apply()
    applied.note(node.tree, node.name, declared("d2"), node.wanted)
    assert node.holding() == "d2"


@pytest.mark.parametrize("document", [{}, [], 1, {"digest": "d1"}, {"digest": "d1", "wanted": {"unknown": 1}}])
def test_a_note_of_another_release_says_nothing(node, document):
    node.apply()
    (node.place / f"run/allreduce/applied/{node.name}.json").write_text(json.dumps(document))
    assert node.holding() is None


def test_a_problem_holds_nothing(tmp_path):
    node = Node(tmp_path, "tuning")
    node.apply()
    assert applied.holding(node.tree, "tuning", lambda wanted: {"changes": [], "problems": ["one"]}) is None


def test_where_nothing_can_be_noted_nothing_is_lost(tmp_path):
    (tmp_path / "run").write_text("a file")
    applied.note(FileTree(str(tmp_path)), "tuning", declared("d1"), NOTHING)
