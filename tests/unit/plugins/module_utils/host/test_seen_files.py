# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is at the paths of files that were kept, in the words that a declaration is compared with."""

import getpass
import grp
import os

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
        ({"settings": {"a": 1}}, None),
        ({"block": "foo"}, None),
        ({"content": "foo", "as_owner": True}, None),
        ({"content": "foo", "follow": False}, None),
        ({"content": "foo", "in_place": True}, None),
        ({"content": {"a": 1}}, None),
        ({"content": "foo", "mode": 420}, None),
        ({"state": "file"}, None),
    ],
)
def test_what_a_declaration_asks_for(entry, words):
    if entry.get("state") == "directory":
        entry = {"mode": "0755", **entry}
    assert seen_files.expected({"path": "/etc/x", **entry}) == words


@pytest.mark.parametrize(
    "entry",
    [
        {"content": "foo", "mode": "0600"},
        {"content": "", "mode": "0644"},
        {"content": "caf\udce9\n", "mode": "0644"},
        {"state": "directory", "mode": "0750"},
        {"state": "absent"},
    ],
)
def test_what_was_written_is_seen_as_declared(tree, tmp_path, entry):
    path = tmp_path / "etc" / "x"
    wanted = {"state": "file", "content": None, "path": str(path), **MINE, **entry}

    def write(there, content):
        with open(there, "wb") as stream:
            stream.write(config_files.as_bytes(content))

    config_files.apply(wanted, config_files.plan(wanted, config_files.read(str(path))), write)
    (tmp_path / "run").mkdir()
    assert seen_files.note(tree, ["/etc/x"]) == {"/etc/x": seen_files.expected(wanted)}
    assert seen_files.read_seen(tree) == {"/etc/x": seen_files.expected(wanted)}


@pytest.mark.parametrize("change", ["content", "mode", "gone", "directory", "link"])
def test_a_change_by_hand_is_seen(tree, tmp_path, change):
    path = tmp_path / "x"
    path.write_text("foo")
    path.chmod(0o644)
    before = seen_files.note(tree, ["/x"])
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
    seen_files.note(tree, ["/a"])
    assert seen_files.note(tree, ["/b"]) == {"/b": "absent"}
    assert seen_files.read_seen(tree) == {"/a": "absent", "/b": "absent"}


@pytest.mark.parametrize("notes", [None, "", "{", '{"a": 1}', "[1]"])
def test_without_notes_nothing_is_looked_at(tree, tmp_path, notes):
    if notes is not None:
        path = tmp_path / "run/allreduce/files.json"
        path.parent.mkdir(parents=True)
        path.write_text(notes)
    assert seen_files.read_seen(tree) == {}


def test_where_nothing_can_be_noted_nothing_is_lost(tree, tmp_path):
    (tmp_path / "run").write_text("a file")
    assert seen_files.note(tree, ["/a"]) == {}
    assert seen_files.read_seen(tree) == {}
