# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import json
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents import files


def names(directory):
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("before", [None, b"old and longer than the new content"])
def test_the_content_is_replaced_and_nothing_else_is_left(tmp_path, before):
    path = tmp_path / "result.json"
    if before is not None:
        path.write_bytes(before)
    files.write_json(path, {"é": [1, None]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"é": [1, None]}
    assert names(tmp_path) == ["result.json"]


def test_a_failure_leaves_the_old_content_and_no_other_file(tmp_path, monkeypatch):
    path = tmp_path / "page"
    path.write_bytes(b"old")

    def fail(_self, _target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        files.replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["page"]


def test_a_reader_never_sees_a_part(tmp_path, monkeypatch):
    """While the new content is being written, the path still holds the old one."""
    path, seen = tmp_path / "page", []
    path.write_bytes(b"old")
    write = Path.write_bytes

    def watched(self, content):
        write(self, content[:1])
        seen.append(path.read_bytes())
        return write(self, content)

    monkeypatch.setattr(Path, "write_bytes", watched)
    files.replace_file(path, b"new")
    assert (seen, path.read_bytes()) == ([b"old"], b"new")
