# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program for a node carries all it imports, is the same every time, and runs without Ansible."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.program import PACKAGE, program_files

PROGRAMS = ("settings.gpu_settings_program", "machine.gpu_fact_program")


@pytest.fixture(params=PROGRAMS)
def program(request, tmp_path):
    for file in program_files(request.param, str(tmp_path)):
        Path(file["path"]).parent.mkdir(parents=True, exist_ok=True)
        Path(file["path"]).write_text(file["content"])
    return request.param, [sys.executable, "-I", "-B", str(tmp_path)]


def test_it_runs_from_its_own_files_alone(program):
    name, command = program
    process = subprocess.run([*command, "--check"], capture_output=True, text=True, check=False)
    if name == "machine.gpu_fact_program":
        assert set(json.loads(process.stdout)) >= {"driver", "gpus", "topology", "problems"}
    else:
        assert process.returncode == 1
        assert process.stderr.startswith("/etc/allreduce/gpu_settings.json cannot be applied: [Errno 2]")


def test_a_wrong_option_shows_the_usage(tmp_path):
    for file in program_files("settings.gpu_settings_program", str(tmp_path)):
        Path(file["path"]).parent.mkdir(parents=True, exist_ok=True)
        Path(file["path"]).write_text(file["content"])
    process = subprocess.run(
        [sys.executable, "-I", "-B", str(tmp_path), "--help"], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr.strip()) == (1, "usage: gpu_settings [--check]")


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_deterministic_and_complete(name):
    files = program_files(name, "/x")
    assert files == program_files(name, "/x")
    paths = [file["path"] for file in files]
    assert paths == sorted(set(paths))
    assert f"/x/{PACKAGE.replace('.', '/')}/machine/nvml.py" in paths


def test_what_is_not_there_is_refused():
    with pytest.raises(ValueError, match="There is no module_utils file no_such.py"):
        program_files("no_such", "/x")


def test_what_needs_ansible_is_refused(tmp_path, monkeypatch):
    (tmp_path / "wants.py").write_text("from ansible.module_utils.basic import AnsibleModule\n")
    monkeypatch.setattr("ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.program.SOURCES", tmp_path)
    with pytest.raises(ValueError, match="imports ansible.module_utils.basic, which a node does not have"):
        program_files("wants", "/x")
