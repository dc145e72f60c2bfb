# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One word for one thing: docs/glossary.md names the words that documentation and task names do without."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/README.md"), *ROOT.glob("data/**/*.md")}
    - {GLOSSARY}
)
# In task names a managed machine is a node, and the sentence says what is done, not "what is needed".
IN_TASK_NAMES = re.compile(r"(?<!/)\b(?!host keys?\b)hosts?\b|\b(what|who|whom)\b", re.IGNORECASE)


def forbidden() -> list[str]:
    """Return the words of the glossary's second table."""
    table = GLOSSARY.read_text(encoding="utf-8").split("## Words not to use")[1].split("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][2:]
    return [word for row in rows for word in row.split(", ")]


PATTERN = re.compile(rf"\b({'|'.join(forbidden())})(e?s)?\b", re.IGNORECASE)


def prose(text: str) -> str:
    """Return Markdown without code, whose words belong to others, and without targets of links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)


def found(text: str) -> list[str]:
    return [line.strip() for line in prose(text).splitlines() if PATTERN.search(line)]


def task_names(value: object) -> Iterator[str]:
    """Yield the names of plays, tasks and blocks."""
    for one in value if isinstance(value, list) else []:
        if isinstance(one, dict):
            yield from [one["name"]] if "name" in one else []
            for part in ("tasks", "handlers", "block", "rescue", "always"):
                yield from task_names(one.get(part))


def test_the_table_is_read():
    assert {"anew", "wish", "venv", "virtualenv"} <= set(forbidden())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documentation_uses_the_words_of_the_glossary(page):
    assert found(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "path",
    sorted({*ROOT.glob("roles/*/tasks/**/*.yml"), *ROOT.glob("roles/*/handlers/*.yml"), *ROOT.glob("playbooks/*.yml")}),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_task_names_use_the_words_of_the_glossary(path):
    names = list(task_names(yaml.safe_load(path.read_text(encoding="utf-8"))))
    assert [name for name in names if PATTERN.search(name) or IN_TASK_NAMES.search(name)] == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Environments are made anew.", 1),
        ("Two wishes clash.", 1),
        ("The package `python3.10-venv` is installed.", 0),
        ("```\nbeside\n```\nNext to it.", 0),
        ("[link](docs/venv.md)", 0),
        ("a mended fence", 0),
    ],
)
def test_forbidden_words(text, lines):
    assert len(found(text)) == lines


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
