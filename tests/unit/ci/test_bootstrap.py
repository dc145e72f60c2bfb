# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment that .ci/bootstrap makes, in which these tests run."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import ansible.cli.playbook
import jinja2.environment
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("module", [ansible.cli.playbook, jinja2.environment], ids=lambda module: module.__name__)
def test_bytecode_is_compiled(module):
    """Or each start of ansible-playbook takes about a second more, where PYTHONDONTWRITEBYTECODE is set."""
    assert Path(importlib.util.cache_from_source(module.__file__)).is_file()


@pytest.fixture
def bare(tmp_path):
    """Run .ci/bootstrap in a checkout whose .venv is complete, on a machine without the programs of the lab."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "bootstrap", tmp_path / ".ci")
    (tmp_path / "requirements-dev.txt").touch()
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".requirements").touch()
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "dirname", "uname", "cmp", "id"):
        (programs / name).symlink_to(shutil.which(name))
    (programs / "python3").symlink_to(os.path.realpath(sys.executable))

    def call(what):
        command = ("bash", ".ci/bootstrap", what)
        return subprocess.run(
            command, cwd=tmp_path, env={"PATH": str(programs)}, capture_output=True, text=True, check=False
        )

    return call


def test_the_archive_is_built_without_the_programs_of_the_lab(bare):
    built = bare("build")
    assert (built.returncode, built.stderr.endswith("bootstrap: ready\n")) == (0, True), built.stderr


def test_the_lab_asks_for_its_programs(bare):
    demo = bare("demo")
    assert demo.returncode == 1
    assert "podman" in demo.stderr
