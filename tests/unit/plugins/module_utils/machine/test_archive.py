# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the archive in which Ansible brings modules is compiled once for a node, as long as it is the same."""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import archive

PACKAGE = "ansible_collections.allreduce.gpu.plugins.module_utils"
# Counts what is compiled after the module itself, by the end of its name.
PROGRAM = """
import builtins, collections, json, sys
compiled, real = collections.Counter(), builtins.compile
def counting(source, filename, *arguments, **more):
    compiled[str(filename).rpartition("module_utils/")[2]] += 1
    return real(source, filename, *arguments, **more)
sys.path[:0] = ["x.zip", "other.zip"]
from %s.machine import archive
builtins.compile = counting
for _time in range(2):
    archive.compile_once("some", sys.argv[1])
import foreign
from %s.sub import leaf
from %s import top
print(json.dumps([compiled, [top.a, leaf.b, leaf.__package__, foreign.c]]))
""" % ((PACKAGE,) * 3)
OWN = {
    "sub/leaf.py": 1,
    "sub/__init__.py": 1,
    "top.py": 1,
    "machine/__init__.py": 1,
    "machine/archive.py": 1,
    "__init__.py": 1,
}


@pytest.fixture
def run(tmp_path):
    """A function that imports from an archive as a module does; returns (what was compiled, what was imported)."""

    def runs(leaf=2, directory=tmp_path / "kept"):
        folder = PACKAGE.replace(".", "/")
        parents = [str(parent) for parent in Path(folder).parents if parent.name]
        files = {f"{parent}/__init__.py": "" for parent in [*parents, folder, f"{folder}/machine", f"{folder}/sub"]}
        files[f"{folder}/machine/archive.py"] = Path(archive.__file__).read_text(encoding="utf-8")
        files[f"{folder}/top.py"] = "from .sub import leaf\na = leaf.b - 1\n"
        files[f"{folder}/sub/leaf.py"] = f"b = {leaf}\n"
        for name, content in (("x.zip", files), ("other.zip", {"foreign.py": "c = 3\n"})):
            with zipfile.ZipFile(tmp_path / name, "w") as made:
                for path, text in content.items():
                    made.writestr(path, text)
        command = [sys.executable, "-I", "-c", PROGRAM, str(directory)]
        compiled, imported = json.loads(subprocess.check_output(command, cwd=str(tmp_path), universal_newlines=True))
        compiled.pop("other.zip/foreign.py", None)
        return {name: count for name, count in compiled.items() if not name.startswith("<")}, imported

    return runs


def test_the_same_sources_are_compiled_once_and_others_again(run):
    expected = [1, 2, f"{PACKAGE}.sub", 3]
    assert run() == (OWN, expected)
    assert run() == ({}, expected)
    assert run(leaf=5) == (OWN, [4, 5, f"{PACKAGE}.sub", 3])
    assert run(leaf=5)[0] == {}


@pytest.mark.parametrize("change", ["damaged", "empty", "writable"])
def test_a_kept_file_that_is_not_trusted_is_not_run(run, tmp_path, change):
    run()
    place = next((tmp_path / "kept").iterdir())
    content = place.read_bytes()
    if change == "writable":
        place.chmod(0o666)
    else:
        place.write_bytes(content[:-1] + b"?" if change == "damaged" else b"")
    assert run()[0] == OWN
    assert run()[0] == {} and place.read_bytes() == content


def test_where_nothing_can_be_kept_modules_are_imported_all_the_same(run, tmp_path):
    (tmp_path / "file").touch()
    assert run(directory=tmp_path / "file" / "kept")[1] == [1, 2, f"{PACKAGE}.sub", 3]


def test_only_the_user_can_write_what_is_kept(run, tmp_path):
    old = os.umask(0)
    try:
        run()
    finally:
        os.umask(old)
    assert [place.stat().st_mode & 0o22 for place in [tmp_path / "kept", *(tmp_path / "kept").iterdir()]] == [0, 0]


def test_root_keeps_it_where_only_root_writes_and_others_at_home(monkeypatch):
    monkeypatch.setenv("HOME", "/tmp/of-somebody-else")
    monkeypatch.setattr(archive.os, "geteuid", lambda: 0)
    assert archive.cache_directory() == "/var/cache/allreduce"
    monkeypatch.setattr(archive.os, "geteuid", lambda: 1234)
    monkeypatch.setattr(archive.pwd, "getpwuid", lambda user: type("Entry", (), {"pw_dir": f"/home/{user}"}))
    assert archive.cache_directory() == "/home/1234/.cache/allreduce"


@pytest.mark.skipif(sys.version_info < (3, 8), reason="before 3.8 Python has no other place for it")
def test_bytecode_that_python_would_not_write_is_kept_elsewhere(monkeypatch, tmp_path):
    source = tmp_path / "site" / "slow_to_compile.py"
    source.parent.mkdir()
    source.write_text("a = 1\n", encoding="ascii")
    monkeypatch.syspath_prepend(str(source.parent))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setattr(archive, "cache_directory", lambda: str(tmp_path / "kept"))
    with archive.kept_bytecode("slow_to_compile"):
        importlib.import_module("slow_to_compile")
    assert [place.stem.partition(".")[0] for place in (tmp_path / "kept").rglob("*.pyc")] == ["slow_to_compile"]
    assert (sys.dont_write_bytecode, vars(sys)["pycache_prefix"]) == (True, None)
    (source.parent / "__pycache__").mkdir()
    next((tmp_path / "kept").rglob("*.pyc")).rename(importlib.util.cache_from_source(str(source)))
    with archive.kept_bytecode("slow_to_compile"), archive.kept_bytecode("not_there"):
        assert vars(sys)["pycache_prefix"] is None


def test_what_is_in_files_is_left_alone():
    before = list(sys.meta_path)
    archive.compile_once("some")
    assert archive.own_archive() is None and sys.meta_path == before
