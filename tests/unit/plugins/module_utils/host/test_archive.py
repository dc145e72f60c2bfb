# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the archive in which Ansible brings modules is compiled once."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import archive

# Counts what zipimport compiles, beginning after the module itself.
PROGRAM = """
import collections, json, sys, zipimport
compiled, real = collections.Counter(), zipimport._compile_source
def counting(path, source):
    compiled[path.rpartition("x.zip/")[2]] += 1
    return real(path, source)
sys.path[:0] = ["x.zip", "other.zip"]
from top import archive, early
zipimport._compile_source = counting
if len(sys.argv) > 1:
    archive.compile_once()
    archive.compile_once()
import foreign
from top import module
from top.sub import leaf
compiled.pop("other.zip/foreign.py")
print(json.dumps([compiled, [module.__file__, leaf.__file__, sys.modules["top.sub"].__file__, foreign.__file__], early is not None]))
"""
FILES = {
    "top/__init__.py": "",
    "top/early.py": "",
    "top/module.py": "a = 1\n",
    "top/sub/__init__.py": "",
    "top/sub/leaf.py": "b = 2\n",
}


def run(place, *arguments):
    files = {**FILES, "top/archive.py": Path(archive.__file__).read_text(encoding="utf-8")}
    for name, content in (("x.zip", files), ("other.zip", {"foreign.py": "c = 3\n"})):
        with zipfile.ZipFile(place / name, "w") as made:
            for path, text in content.items():
                made.writestr(path, text)
    command = [sys.executable, "-I", "-c", PROGRAM, *arguments]
    return json.loads(subprocess.check_output(command, cwd=str(place), universal_newlines=True))


@pytest.mark.skipif(sys.version_info < (3, 10), reason="before 3.10 nothing is compiled twice")
def test_each_file_is_compiled_once(tmp_path):
    own = ("top/module.py", "top/sub/__init__.py", "top/sub/leaf.py")
    twice, names, _early = run(tmp_path)
    once, same, _early = run(tmp_path, "once")
    assert {path: twice[path] for path in own} == dict.fromkeys(own, 2), "when this is once, module archive may go"
    assert once == dict.fromkeys(own, 1)
    assert same == names


def test_what_is_in_files_is_left_alone():
    before = list(sys.path_hooks)
    archive.compile_once()
    assert archive.own_archive() is None and sys.path_hooks == before
