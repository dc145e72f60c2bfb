# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes for the modules after: written, read, taken away, and never in the way."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import boot_notes
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree


def test_there_and_back(tmp_path):
    tree = FileTree(str(tmp_path))
    assert boot_notes.read(tree, "a/b") is None
    boot_notes.write(tree, "a/b", {"x": ["\udcff", None]})
    path = tmp_path / "run/allreduce/a/b.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert boot_notes.read(tree, "a/b") == {"x": ["\udcff", None]}
    boot_notes.write(tree, "a/b", 1)
    assert boot_notes.read(tree, "a/b") == 1 and [one.name for one in path.parent.iterdir()] == ["b.json"]
    boot_notes.remove(tree, "a/b")
    boot_notes.remove(tree, "a/b")
    assert boot_notes.read(tree, "a/b") is None and not path.exists()


def test_what_is_kept_is_where_no_boot_takes_it_away(tmp_path):
    tree = FileTree(str(tmp_path))
    boot_notes.write(tree, "a", 1, boot_notes.KEPT)
    assert boot_notes.read(tree, "a") is None and boot_notes.read(tree, "a", boot_notes.KEPT) == 1
    assert (tmp_path / "var/lib/allreduce/notes/a.json").exists() and not (tmp_path / "run").exists()


@pytest.mark.parametrize("text", ["", "{", "null"])
def test_what_is_no_document_is_no_note(tmp_path, text):
    (tmp_path / "run/allreduce").mkdir(parents=True)
    (tmp_path / "run/allreduce/a.json").write_text(text)
    assert boot_notes.read(FileTree(str(tmp_path)), "a") is None


def test_where_nothing_can_be_written_the_caller_hears_of_it(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(EnvironmentError):
        boot_notes.write(FileTree(str(tmp_path)), "a", 1)
