# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first screen of README names the two commands and what they cost; in all documents, a command has its line to itself."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCREEN = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40]
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def table():
    """The rows of the first table, by their first cell."""
    lines = [line.strip("|").split("|") for line in SCREEN if line.startswith("|")]
    head, _rule, *rows = ([cell.strip() for cell in line] for line in lines)
    return {row[0].strip("`"): dict(zip(head, row, strict=True)) for row in rows}


def test_it_names_the_main_job_and_the_tests(table):
    assert list(table) == ["make demo", "make test"]


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_makefile_has_the_command(command):
    assert command.partition(" ")[2] in TARGETS


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_it_says_what_the_command_costs(table, command):
    row = table[command]
    assert re.fullmatch(r"[\d.]+ GB", row["downloads"])
    assert re.fullmatch(r"[\d.]+ GB", row["disk"])
    assert re.match(r"\d+( to \d+)? minutes", row["time"])


def test_it_says_what_both_need():
    text = "\n".join(SCREEN)
    for need in ("as root", "Debian 12", "x86-64", "git, make and Python 3.11 to 3.13"):
        assert need in text


DOCUMENTS = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/README.md"), *ROOT.glob("examples/*.md")}
)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_command_does_stands_above_it(path):
    """Behind it, it is out of sight on the documentation site. Where # is the prompt of root, nothing can stand above."""
    blocks = re.findall(
        r"^```(?:console|bash|sh)\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    commands = [line for block in blocks for line in block.splitlines() if not line.startswith("# ")]
    assert [line for line in commands if re.search(r"\s# ", line)] == []
