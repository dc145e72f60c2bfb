# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What editors, hooks and the forge are told is true of the checkout."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
# Its last line is the lock as conda wrote it; .editorconfig says so, too.
NO_FINAL_NEWLINE = "roles/python_env/templates/conda.txt.j2"


@pytest.fixture(scope="module")
def texts():
    """The content of each file that git takes for text, by its path."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "--eol"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [line.partition("\t") for line in listed]
    names = [name for row, _tab, name in rows if "-text" not in row and (ROOT / name).is_file()]
    return {name: (ROOT / name).read_bytes() for name in names}


def test_texts_are_as_editors_are_told_to_save_them(texts):
    assert len(texts) > 1000
    assert f"[{NO_FINAL_NEWLINE}]" in texts[".editorconfig"].decode()
    for name, content in texts.items():
        content.decode("utf-8")
        assert b"\r" not in content, name
        assert not re.search(rb"[ \t]$", content, re.MULTILINE), name
        assert not content or content.endswith(b"\n") or name == NO_FINAL_NEWLINE, name


def test_no_deadline_goes_by_a_clock_that_is_set(texts):
    """A time service that sets a node's clock at boot ends a wait at once, or makes it as long as the clock was wrong."""
    plugins = {name: text.decode() for name, text in texts.items() if re.match(r"(plugins|roles)/.*\.py$", name)}
    assert [name for name, text in plugins.items() if "time.time() +" in text] == []


def test_hooks_call_what_bootstrap_installs():
    hooks = [
        hook
        for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
        for hook in repository["hooks"]
    ]
    pinned = re.findall(r"^([\w-]+)==", (ROOT / "requirements-dev.txt").read_text(encoding="utf-8"), re.MULTILINE)
    programs = {hook["entry"].partition(" ")[0] for hook in hooks}
    assert {".venv/bin/ruff", ".venv/bin/yamllint", ".venv/bin/nox"} <= programs
    assert {program.removeprefix(".venv/bin/") for program in programs} <= set(pinned)


def test_the_owner_is_the_author_that_plugins_name():
    owners = re.findall(
        r"^[^#\s]\S* (.+)$", (ROOT / ".github" / "CODEOWNERS").read_text(encoding="utf-8"), re.MULTILINE
    )
    authors = {
        handle
        for path in ROOT.glob("plugins/modules/*.py")
        for handle in re.findall(r"^author: .*\((@\w+)\)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {owners[0]} == authors == {*owners}


RECIPES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## Recipes\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("recipe", RECIPES.split("\n### ")[1:], ids=lambda text: text.partition(":")[0])
def test_a_recipe_counts_its_files_and_runs_tests_that_exist(recipe):
    (count,) = re.findall(r"\A.*: (\d+) files\n", recipe)
    numbers = re.findall(r"^(\d+)\. ", recipe, re.MULTILINE)
    assert numbers[-1] == count, f"the heading says {count} files, and the last one is number {numbers[-1]}"
    commands = "\n".join(re.findall(r"^\$ .*", recipe, re.MULTILINE))
    paths = [path for path in re.findall(r" (tests/\S+)", commands) if "<name>" not in path]
    assert [path for path in paths if not (ROOT / path).exists()] == []
