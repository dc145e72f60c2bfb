# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The standalone layout of an interpreter."""

from __future__ import annotations

import pytest

from tests.lab.interpreters import layout


@pytest.mark.parametrize(
    ("name", "directory", "expected"),
    [
        ("test", True, True),
        ("tkinter", True, True),
        ("unittest", True, False),
        ("venv", True, False),
        ("libpython3.10.a", False, True),
        ("_tkinter.cpython-310-x86_64-linux-gnu.so", False, True),
        ("_testcapi.cpython-310-x86_64-linux-gnu.so", False, True),
        ("_ssl.cpython-310-x86_64-linux-gnu.so", False, False),
        ("test.py", False, False),
    ],
)
def test_what_is_left_out(name, directory, expected):
    assert layout.is_left_out(name, directory) == expected


def _write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_build_that_runs_anywhere_is_only_laid_out(tmp_path):
    source, root = tmp_path / "source", tmp_path / "python"
    _write(source / "bin/python3.10", "program")
    _write(source / "include/python3.10/Python.h")
    standard = source / "lib/python3.10"
    _write(standard / "os.py")
    _write(standard / "test/test_os.py")
    _write(standard / "json/__pycache__/x.pyc")
    _write(standard / "site-packages/pip/__init__.py")
    _write(standard / "site-packages/private/__init__.py")
    _write(standard / "_sysconfigdata__linux.py", f"prefix = '{source}'")
    _write(source / "lib/libpython3.10.so.1.0", "library")
    root.mkdir()
    layout.assemble(source, "3.10", root, portable=True)
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_symlink() or path.is_file()}
    assert found == {
        "bin/python",
        "bin/python3",
        "bin/python3.10",
        "include/python3.10/Python.h",
        "lib/libpython3.10.so",
        "lib/libpython3.10.so.1.0",
        "lib/python3.10/_sysconfigdata__linux.py",
        "lib/python3.10/lab/libpython3.10.so.1.0",
        "lib/python3.10/os.py",
        "lib/python3.10/site-packages/pip/__init__.py",
    }
    assert (root / "lib/libpython3.10.so").read_text() == "library"
    assert (root / "lib/python3.10/_sysconfigdata__linux.py").read_text() == "prefix = '/install'"
