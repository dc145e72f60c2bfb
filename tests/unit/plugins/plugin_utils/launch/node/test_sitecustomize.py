# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types of the exception that ends a rank, noted by a real process that rank.py starts."""

import os
import shutil
import subprocess
import sys

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.request import NODE_FILES

# Of the name that PyTorch's has from 2.5 on; torch.cuda.OutOfMemoryError before.
TORCH = "class OutOfMemoryError(RuntimeError): pass\n"
FULL = "torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 20.00 GiB')"
NAMES = ["torch.OutOfMemoryError", "builtins.RuntimeError", "builtins.Exception", "builtins.BaseException"]
# As PyTorch's init_process_group does.
HOOK = """
import sys
before = sys.excepthook
def hook(*given):
    before(*given)
    print("own hook", file=sys.stderr)
sys.excepthook = hook
"""


@pytest.fixture
def end(tmp_path):
    """Run a script as rank 3 to its end; its exit code, its stderr, and what was noted."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "work").mkdir()
    for name in ("rank.py", "sitecustomize.py"):
        shutil.copy(NODE_FILES / name, tmp_path)
    (tmp_path / "launch.json").write_text('{"engine": "torchrun", "min_nodes": 1}')
    (tmp_path / "work" / "torch.py").write_text(TORCH)

    def end(script):
        (tmp_path / "work" / "train.py").write_text("import os, sys, torch\n" + script)
        environment = {**os.environ, "RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}
        argv = [sys.executable, str(tmp_path / "rank.py"), "train.py"]
        status = subprocess.run(argv, env=environment, cwd=tmp_path / "work", check=False).returncode
        noted = tmp_path / "logs" / "rank3.cause"
        names = noted.read_text().splitlines() if noted.is_file() else None
        return status, (tmp_path / "logs" / "rank3.err").read_text(), names

    return end


@pytest.mark.parametrize(
    ("script", "names"),
    [
        (f"raise {FULL}", NAMES),
        (f"{HOOK}raise {FULL}", NAMES),
        (f"raise ValueError('step 7') from {FULL}", ["builtins.ValueError", *NAMES[2:], *NAMES]),
        ("bytes(1 << 60)", ["builtins.MemoryError", *NAMES[2:]]),
        ("class Full(torch.OutOfMemoryError): pass\nraise Full", ["__main__.Full", *NAMES]),
        ("class A:\n  class B(Exception): pass\nraise A.B", ["__main__.A.B", *NAMES[2:]]),
    ],
)
def test_the_types_of_the_exception_are_noted(end, script, names):
    status, said, found = end(script)
    assert (status, found) == (1, names)
    assert said.count("Traceback (most recent call last)") == 1
    assert ("own hook" in said) == (HOOK in script)


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("", 0),
        ("sys.exit(7)", 7),
        (f"try:\n    raise {FULL}\nexcept RuntimeError:\n    sys.exit('smaller')", 1),
        # A child of the rank is not the rank.
        ("if os.fork() == 0:\n    raise MemoryError\nos.wait()", 0),
    ],
)
def test_nothing_is_noted_of_another_end(end, script, ended):
    status, _said, found = end(script)
    assert (status, found) == (ended, None)


@pytest.mark.parametrize(
    "script",
    [
        "class Odd(Exception): __module__ = 7\nraise Odd",
        "class Named(type):\n    __module__ = property(lambda self: 1 / 0)\nclass Odd(Exception, metaclass=Named): pass\nraise Odd",
        "Odd = type('Odd' * 100000, (Exception,), {})\nraise Odd",
        "error = ValueError('Odd')\nerror.__cause__ = error\nraise error",
        "Odd = Exception\nfor number in range(500):\n    Odd = type('Odd', (Odd,), {})\nraise Odd",
        "os.mkdir('../logs/rank3.cause')\nraise ValueError('Odd')",
    ],
)
def test_whatever_is_raised_its_traceback_is_printed_and_the_note_is_short(end, tmp_path, script):
    status, said, _found = end(script)
    assert status == 1
    assert "Traceback (most recent call last)" in said and "Odd" in said
    assert "sitecustomize" not in said
    noted = tmp_path / "logs" / "rank3.cause"
    assert not noted.is_file() or noted.stat().st_size < 8192
