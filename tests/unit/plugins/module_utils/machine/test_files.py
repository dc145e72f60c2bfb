# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import errno
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import files as module
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree


def test_what_is_missing_is_none_or_empty(tmp_path):
    files = tree(tmp_path, {})
    assert (files.text("/a"), files.number("/a"), files.names("/a"), files.link("/a")) == (None, None, [], None)


def test_numbers(tmp_path):
    files = tree(tmp_path, {"/hex": "0x10de\n", "/minus": "-1\n", "/word": "x\n"})
    assert [files.number(path) for path in ("/hex", "/minus", "/word")] == [0x10DE, -1, None]


def test_links_are_followed_below_the_root(tmp_path):
    files = tree(
        tmp_path,
        {"/usr/src/headers/Makefile": "", "/lib/build": ("link", "/usr/src/headers"), "/a/b": ("link", "../lib")},
    )
    assert files.resolve("/a/b/build/Makefile") == "/usr/src/headers/Makefile"
    assert files.is_directory("/a/b/build")


def test_a_circle_of_links_ends(tmp_path):
    files = tree(tmp_path, {"/a": ("link", "b"), "/b": ("link", "a")})
    assert files.resolve("/a") in ("/a", "/b")


def test_a_file_is_replaced_whatever_an_interrupted_run_left(tmp_path):
    path = tmp_path / "lock.txt"
    (tmp_path / "lock.txt.new").write_text("half of something that was longer")
    module.replace(str(path), "whole\n", 0o600)
    assert (path.read_text(), os.listdir(str(tmp_path))) == ("whole\n", ["lock.txt"])
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_disk_leaves_the_former_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "lock.txt"
    module.replace(str(path), "former\n")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        module.replace(str(path), "new\n")
    assert (path.read_text(), os.listdir(str(tmp_path))) == ("former\n", ["lock.txt"])
