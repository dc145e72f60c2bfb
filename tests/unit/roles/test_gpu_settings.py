# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles gpu_settings and gpu_local_fact in check mode, on this machine: what each kind of host would get."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording

from tests.support.local_play import CHECKOUT, run_roles

COLLECTIONS = Path(__file__).resolve().parents[3] / ".collections"
DECLARED = {"persistence_mode": True, "power_limit_watts": 250}
GPU = [{"name": "NVIDIA A40"}]
ENABLED = {"allreduce-gpu-settings": {"enabled": True, "active": False}}
# host: what a user sets, and what was measured; "changed" is the number of tasks that would change something.
HOSTS = {
    "off": ({}, {"gpus": GPU}, 0),
    "off_twice": ({"gpu_settings_declaration": {}}, {"gpus": GPU}, 0),
    "declared": ({"gpu_settings_declaration": DECLARED}, {"gpus": GPU}, 3),
    "several": ({"gpu_settings_declaration": [DECLARED, {"gpus": [1], "ecc": True}]}, {"gpus": GPU}, 3),
    "not_loaded": ({"gpu_settings_declaration": DECLARED, "profile": "not_loaded"}, {"gpus": GPU}, 2),
    "unloaded": (
        {"gpu_settings_declaration": DECLARED},
        {"gpus": GPU, "driver": {"installed": "535.1", "loaded": None}},
        2,
    ),
    "loaded": (
        {"gpu_settings_declaration": DECLARED},
        {"gpus": GPU, "driver": {"installed": "535.1", "loaded": "535.1"}},
        3,
    ),
    "without_gpu": ({"gpu_settings_declaration": DECLARED}, {"gpus": []}, 0),
    "fact": ({"gpu_local_fact_state": "present"}, {"gpus": GPU}, 1),
    "no_fact": ({"gpu_local_fact_state": "absent"}, {"gpus": GPU}, 0),
}
PLAY = [
    {
        "hosts": "all",
        "gather_facts": False,
        "environment": {"SIMULATED_NVML": "{{ place }}/{{ profile | default('profile') }}"},
        "tasks": [
            {
                "ansible.builtin.set_fact": {
                    "cacheable": True,
                    "gpu_stack": {},
                    "gpu_node": {"gpus": "{{ measured_gpus }}"},
                    "gpu_node_state": {"services": "{{ measured_services }}", "driver": "{{ measured_driver }}"},
                }
            },
            {"ansible.builtin.include_role": {"name": "allreduce.gpu.gpu_settings"}},
            {"ansible.builtin.include_role": {"name": "allreduce.gpu.gpu_local_fact"}},
        ],
    }
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Output of one playbook over all hosts, with four simulated A40."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc to build the simulated NVML with")
    place = tmp_path_factory.mktemp("roles")
    recording.build_library(place / "libnvidia-ml.so.1")
    recording.record(machines.a40_pcie(), place)
    (place / "not_loaded").write_text("system init !9\n")
    common = {"place": str(place), "ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {
        name: {
            **common,
            "measured_gpus": measured["gpus"],
            "measured_services": {},
            "measured_driver": measured.get("driver"),
            **given,
        }
        for name, (given, measured, _changed) in HOSTS.items()
    }
    (place / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    (place / "play.yml").write_text(json.dumps(PLAY))
    environment = {
        # Without the checkout's own settings, which fold long lines.
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_NOCOLOR": "1",
        "LD_LIBRARY_PATH": str(place),
    }
    command = [sys.executable, "-m", "ansible", "playbook", "--check", "--diff", "-i", "hosts.json", "play.yml"]
    process = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert not (place / "profile.state").exists()
    return process.stdout


@pytest.mark.parametrize("host", HOSTS)
def test_what_would_change(run, host):
    recap = re.search(rf"(?m)^{host} +: ok=\d+ +changed=(\d+)", run)
    assert int(recap[1]) == HOSTS[host][2]


def test_a_host_without_a_declaration_is_not_asked(run):
    tasks = re.findall(r"(?ms)^TASK \[([^\]]+)\][^\n]*\n(.*?)(?=^TASK|^PLAY|\Z)", run)
    on_off = [name for name, output in tasks if re.search(r"(?m)^(ok|changed): \[off(_twice)?\]", output)]
    # Setting the scene and validating arguments do not reach the host.
    strangers = [name for name in on_off if not re.search(r"set_fact$|Validating arguments", name)]
    assert on_off
    assert strangers == []


def test_a_host_without_gpu_is_told(run):
    assert "without_gpu has no GPU: its gpu_settings_declaration is ignored." in run


def test_settings_wait_for_a_driver_that_is_not_loaded(run):
    assert "Driver Not Loaded; install and load the driver" in run
    assert "They are applied at the next boot, or when this role runs again." in run


def test_no_gpu_is_asked_where_the_measured_driver_is_not_loaded(run):
    (answers,) = re.findall(
        r"(?ms)^TASK \[allreduce.gpu.gpu_settings : Apply the GPU settings\][^\n]*\n(.*?)(?=^TASK)", run
    )
    assert "skipping: [unloaded]" in answers
    assert "changed: [loaded]" in answers
    assert (
        "The GPU settings cannot be applied: the installed driver 535.1 is not loaded. They are applied at the next boot"
        in " ".join(run.split())
    )


@pytest.mark.parametrize(
    "path", ["/etc/allreduce/gpu_settings.json", "/etc/systemd/system/allreduce-gpu-settings.service"]
)
def test_what_applies_it_at_boot_is_shown(run, path):
    assert re.search(rf"(?m)^\+\+\+ after: {re.escape(path)}", run)


def test_the_gpus_difference_is_shown(run):
    assert re.search(r"(?m)^-power_limit_watts: 300\n\+persistence_mode: true\n\+power_limit_watts: 250", run)


@pytest.mark.parametrize(("left", "changed"), [("absent", 0), ("file 0644 root:root 0", 1)])
def test_what_an_interrupted_run_left_is_removed(tmp_path, left, changed):
    """The unit is not enabled any more, or not yet."""
    unit = tmp_path / "a.service"
    unit.touch()
    state = {"services": {"allreduce-gpu-settings": {"enabled": False, "active": False}}, "files": {str(unit): left}}
    facts = {"gpu_stack": {}, "gpu_node": {"gpus": GPU}, "gpu_node_state": state}
    given = {"__gpu_settings_removed": [{"path": str(unit)}]}
    output = run_roles(tmp_path, ["gpu_settings"], facts, "--check", "-e", json.dumps(given)).output
    assert f"changed={changed} " in output, output


def test_a_removal_ends_with_what_tells_that_there_is_something_to_remove():
    """An interrupted one goes on the next time."""
    tasks = yaml.safe_load((CHECKOUT / "roles/gpu_settings/tasks/absent.yml").read_text("utf-8"))
    *_others, directory, files = [set(task) for task in tasks]
    assert "ansible.builtin.file" in directory
    assert "allreduce.gpu.config_files" in files


def test_a_removal_that_a_later_failure_ends_leaves_no_directory(tmp_path):
    """Handlers do not run then, and the next run finds no unit to remove."""
    program, record, unit = tmp_path / "lib" / "gpu_settings", tmp_path / "record.json", tmp_path / "a.service"
    (program / "allreduce").mkdir(parents=True)
    for file in (record, unit):
        file.touch()
    (tmp_path / "play.yml").write_text(
        json.dumps([{**PLAY[0], "tasks": [*PLAY[0]["tasks"][:2], {"ansible.builtin.fail": {}}]}])
    )
    given = {
        "ansible_connection": "local", "ansible_python_interpreter": sys.executable, "place": "", "measured_gpus": GPU,
        "measured_services": {}, "measured_driver": None,
        "gpu_settings_state": "absent", "__gpu_settings_directory": str(program), "__gpu_settings_record": str(record),
        "__gpu_settings_unit": str(unit), "__gpu_settings_removed": [{"path": str(unit)}, {"path": str(record)}],
    }  # fmt: skip
    (tmp_path / "given.json").write_text(json.dumps(given))
    process = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "one,", "-e", "@given.json", "play.yml"],
        cwd=tmp_path,
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Failed as requested" in process.stdout + process.stderr
    assert not record.exists()
    assert not program.exists()
