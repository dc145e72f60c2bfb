# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words of task names, and the settings of codespell, which looks at all other prose (tools/words.txt)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
# In task names a managed machine is a node, and the sentence says what is done, not "what is needed".
IN_TASK_NAMES = re.compile(r"(?<!/)\b(?!host keys?\b)hosts?\b|\b(what|who|whom)\b", re.IGNORECASE)


def task_names(value: object) -> Iterator[str]:
    """Yield the names of plays, tasks and blocks."""
    for one in value if isinstance(value, list) else []:
        if isinstance(one, dict):
            yield from [one["name"]] if "name" in one else []
            for part in ("tasks", "handlers", "block", "rescue", "always"):
                yield from task_names(one.get(part))


@pytest.mark.parametrize(
    "path",
    sorted({*ROOT.glob("roles/*/tasks/**/*.yml"), *ROOT.glob("roles/*/handlers/*.yml"), *ROOT.glob("playbooks/*.yml")}),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_task_names_use_the_words_of_the_glossary(path):
    names = list(task_names(yaml.safe_load(path.read_text(encoding="utf-8"))))
    assert [name for name in names if IN_TASK_NAMES.search(name)] == []


@pytest.mark.parametrize(
    ("name", "hit"),
    [
        ("Reboot the host", True),
        ("Gather the host keys", False),
        ("Install what did not come", True),
        ("Reboot the node", False),
    ],
)
def test_forbidden_in_task_names(name, hit):
    assert bool(IN_TASK_NAMES.search(name)) is hit


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""What a host has."""', ['"""What']),
        ('"""The facts, and what a host has."""', []),
        ("Return whether it runs.", ["Return whether"]),
        ("Nobody has a graphics card beside it.", ["Nobody", "graphics card", "beside"]),
        ("Run `python -m venv`, or see [this](venv.md).", []),
        ("```\nbeside\n```\nNext to it.", []),
        ("Its default: nobody", []),
        ("a mended fence, and a teh", ["mended", "teh"]),
    ],
)
def test_what_codespell_finds(text, found):
    command = [sys.executable, "-m", "codespell_lib", "--toml", "pyproject.toml", "-"]
    done = subprocess.run(command, input=text, cwd=ROOT, capture_output=True, text=True, check=False)
    assert re.findall(r"^\s+(.+?) ==> ", done.stdout, re.MULTILINE) == found, done.stdout + done.stderr
    assert bool(done.returncode) is bool(found)
