# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is at the paths of files that were kept, in the words that a declaration is compared with."""

import getpass
import grp
import os
import re

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import config_files, seen_files
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.modules.config_files import SPEC

MINE = {"owner": getpass.getuser(), "group": grp.getgrgid(os.getgid()).gr_name}
OWNER = "{owner}:{group}".format(**MINE)
SHA = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"  # of "foo", as sha256sum prints it


@pytest.fixture
def tree(tmp_path):
    return FileTree(str(tmp_path))


def test_the_defaults_are_the_module_s():
    assert {key: SPEC[key]["default"] for key in seen_files.DEFAULTS} == seen_files.DEFAULTS
    assert set(SPEC) >= seen_files.PLAIN


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"content": "foo"}, f"file 0644 root:root {SHA}"),
        ({"content": "foo", "mode": "0600", "owner": "a", "group": "b", "validate": ["x"]}, f"file 0600 a:b {SHA}"),
        ({"content": "foo", "state": None, "block": None}, f"file 0644 root:root {SHA}"),
        ({"state": "directory"}, "directory 0755 root:root"),
        ({"state": "absent"}, "absent"),
        ({"state": "absent", "content": "foo"}, "absent"),
    ],
)
def test_what_a_declaration_asks_for(entry, words):
    if entry.get("state") == "directory":
        entry = {"mode": "0755", **entry}
    assert seen_files.expected({"path": "/etc/x", **entry}) == words


# What has to be planned to be compared.
PLANNED = [
    {"settings": {"a": 1}},
    {"settings": {"a": 2}},
    {"settings": {"a": 1}, "section": "main"},
    {"block": "foo"},
    {"block": "foo", "block_name": "bar"},
    {"content": "foo", "as_owner": True},
    {"content": "foo", "follow": False},
    {"content": "foo", "in_place": True},
    {"content": {"a": 1}},
    {"content": "foo", "mode": 420},
    {"state": "file"},
    {"content": "caf\udce9", "follow": False},
]


def test_each_other_declaration_has_words_of_its_own():
    found = [seen_files.expected({"path": path, **entry}) for entry in PLANNED for path in ("/etc/x", "/etc/y")]
    assert len(set(found)) == len(found)
    assert all(re.fullmatch("declared [0-9a-f]{64}", words) for words in found)
    assert seen_files.expected({"path": "/etc/x", "block": "foo", "mode": None}) == seen_files.expected(
        {"block": "foo", "path": "/etc/x"}
    )


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"content": "foo", "block_name": "x", "section": "x"}, "/etc/x"),
        ({"content": "foo", "block": None, "settings": None}, "/etc/x"),
        ({"state": "absent"}, "/etc/x"),
        ({"block": ""}, "/etc/x [allreduce.gpu]"),
        ({"block": "foo", "block_name": "hosts"}, "/etc/x [hosts]"),
        ({"settings": {}}, "/etc/x [main]"),
        ({"settings": {"a": 1}, "section": "updates"}, "/etc/x [updates]"),
    ],
)
def test_parts_of_a_file_have_names_of_their_own(entry, name):
    assert seen_files.name({"path": "/etc/x", **entry}) == name


def test_the_parts_and_their_names_are_the_module_s():
    for option, part, default in seen_files.PARTS:
        assert (option in SPEC, SPEC[part]["default"]) == (True, default)


WHOLE = {name: one.get("default") for name, one in SPEC.items()}


def keep(entry, root):
    """Bring what is declared about, and note it; return the name, the words that are asked for, and what is seen."""
    declared = {**MINE, **entry}
    wanted = {**WHOLE, **declared, "path": str(root) + entry["path"]}

    def write(there, content):
        with open(there, "wb") as stream:
            stream.write(config_files.as_bytes(content))

    there = config_files.found(wanted)
    whole = config_files.completed(wanted, there)
    config_files.apply(whole, config_files.plan(whole, there), write)
    name, words = seen_files.name(declared), seen_files.expected(declared)
    return name, words, seen_files.note(FileTree(str(root)), {name: words}, [{**WHOLE, **declared}])


@pytest.mark.parametrize(
    "entry",
    [
        {"content": "foo", "mode": "0600"},
        {"content": "", "mode": "0644"},
        {"content": "caf\udce9\n", "mode": "0644"},
        {"state": "directory", "mode": "0750"},
        {"state": "absent"},
        {"content": "foo", "follow": False},
        {"content": "foo", "as_owner": True},
        {"settings": {"gpgcheck": 1, "proxy": ""}},
        {"block": "10.0.0.1 gpu-1", "block_name": "hosts", "block_first": True, "commented_out": "127[.].*"},
        {"block": ""},
    ],
)
def test_what_was_written_is_seen_as_declared(tree, tmp_path, entry):
    name, words, seen = keep({"path": "/etc/x", **entry}, tmp_path)
    assert seen == {name: words}
    assert seen_files.read_seen(tree) == {name: words}


BLOCK = {
    "path": "/etc/x",
    "block": "10.0.0.1 gpu-1",
    "block_name": "hosts",
    "commented_out": "127[.].*",
    "mode": "0644",
}


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        (lambda path: path.write_text("1.2.3.4 x\n" + path.read_text()), True),
        (lambda path: path.write_text(path.read_text().replace("10.0.0.1", "10.0.0.9")), False),
        (lambda path: path.write_text(path.read_text() + "127.0.1.1 gpu-1\n"), False),
        (lambda path: path.write_text(""), False),
        (lambda path: path.chmod(0o600), False),
        (lambda path: path.unlink(), False),
    ],
)
def test_a_part_is_as_declared_whatever_the_rest_of_the_file_is(tree, tmp_path, change, holds):
    name, words, _seen = keep(BLOCK, tmp_path)
    change(tmp_path / "etc" / "x")
    assert seen_files.read_seen(tree) == {name: words if holds else "differs"}


def test_what_can_no_longer_be_planned_is_left_out(tree, tmp_path):
    keep({"path": "/etc/x", "content": "foo", "follow": False}, tmp_path)
    (tmp_path / "etc/x").rename(tmp_path / "y")
    (tmp_path / "etc/x").symlink_to("../y")
    assert seen_files.read_seen(tree) == {}


def test_another_declaration_of_the_same_part_takes_its_place(tree, tmp_path):
    keep(BLOCK, tmp_path)
    name, words, _seen = keep({**BLOCK, "block": "10.0.0.2 gpu-2"}, tmp_path)
    assert seen_files.read_seen(tree) == {name: words}


def note(tree, path):
    """Note a plain file; return what is seen of it."""
    return seen_files.note(tree, {path: "absent"}, [{**WHOLE, "path": path}])


@pytest.mark.parametrize("change", ["content", "mode", "gone", "directory", "link"])
def test_a_change_by_hand_is_seen(tree, tmp_path, change):
    path = tmp_path / "x"
    path.write_text("foo")
    path.chmod(0o644)
    before = note(tree, "/x")
    assert before == {"/x": f"file 0644 {OWNER} {SHA}"}
    if change == "content":
        path.write_text("fop")
    elif change == "mode":
        path.chmod(0o600)
    else:
        path.unlink()
    if change == "directory":
        path.mkdir()
    elif change == "link":
        path.symlink_to("nowhere")
    assert seen_files.read_seen(tree) != before


def test_paths_are_added_to_those_noted_before(tree):
    note(tree, "/a")
    assert note(tree, "/b") == {"/b": "absent"}
    assert seen_files.read_seen(tree) == {"/a": "absent", "/b": "absent"}


@pytest.mark.parametrize("notes", [None, "", "{", '{"a": 1}', '{"a": {"words": "x", "entry": {}}}', "[1]", '["/a"]'])
def test_without_notes_nothing_is_looked_at(tree, tmp_path, notes):
    if notes is not None:
        path = tmp_path / "var/lib/allreduce/notes/files.json"
        path.parent.mkdir(parents=True)
        path.write_text(notes)
    assert seen_files.read_seen(tree) == {}


def test_where_nothing_can_be_noted_nothing_is_lost(tree, tmp_path):
    (tmp_path / "var").write_text("a file")
    assert note(tree, "/a") == {}
    assert seen_files.read_seen(tree) == {}
