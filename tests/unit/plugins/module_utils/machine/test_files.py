# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
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
