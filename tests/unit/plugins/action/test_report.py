# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible_collections.allreduce.gpu.plugins.action.report import ActionModule
from ansible_collections.allreduce.gpu.tests.report import cluster

ROOT = Path(__file__).resolve().parents[4]
FILES = ("report.html", "report.json", "junit.xml")


@pytest.fixture
def directory(tmp_path):
    return cluster.write(tmp_path / "reports", cluster.verification(), cluster.results())


def report(check=False, **arguments):
    task = SimpleNamespace(args=arguments, check_mode=check, async_val=0, diff=True, action="allreduce.gpu.report")
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="unused"))
    action = ActionModule(task, connection, None, DataLoader(), None, None)
    action._load_name = task.action
    return action.run(task_vars={})


def test_change_in_check_mode(directory):
    result = report(check=True, directory=str(directory))

    assert result["changed"]
    assert "report.html would be created" in result["diff"][0]["prepared"]
    assert not [name for name in FILES if (directory / name).exists()]


def test_change(directory):
    result = report(directory=str(directory), title="Cluster A")

    assert result["changed"]
    assert result["files"] == [str(directory / name) for name in FILES]
    assert result["verdict"]["status"] == "failed"
    assert json.loads((directory / "report.json").read_text())["title"] == "Cluster A"


@pytest.mark.parametrize("check", [False, True])
def test_idempotent(directory, check):
    report(directory=str(directory))
    before = [(directory / name).stat().st_mtime_ns for name in FILES]
    result = report(check=check, directory=str(directory))

    assert not result["changed"]
    assert result["diff"] == []
    assert [(directory / name).stat().st_mtime_ns for name in FILES] == before


def test_a_new_run_updates_the_report(directory):
    report(directory=str(directory))
    run = cluster.run("20261121T170000-2n", ["gpu-1", "gpu-2"], "2026-11-21T17:00:00Z", "2026-11-21T17:00:30Z", 2300)
    cluster.write(directory, cluster.verification(), [run])

    assert report(directory=str(directory))["changed"]


def test_a_wrong_directory_is_one_sentence(tmp_path):
    with pytest.raises(AnsibleError, match="does not exist; run the verify playbook") as error:
        report(directory=str(tmp_path / "no"))
    assert error.value.result["cause"] == "no_report_directory"
    assert str(error.value).endswith("the directory of its verify.json.")


def test_a_misspelt_argument_is_refused(directory):
    with pytest.raises(AnsibleError, match="heading"):
        report(directory=str(directory), heading="Cluster A")


@pytest.mark.parametrize(
    ("name", "variables", "options"),
    [
        (".reports", {}, []),
        (".reports", {}, ["--limit", "gpu-2"]),
        ("elsewhere", {"report_directory": "{{ inventory_dir }}/elsewhere"}, []),
        ("elsewhere", {}, ["-e", "report_directory=elsewhere"]),
    ],
    ids=["default", "limited", "inventory", "relative"],
)
def test_the_playbook_finds_the_directory_of_the_nodes(tmp_path, name, variables, options):
    directory = cluster.write(tmp_path / name, cluster.verification(), cluster.results())
    inventory = tmp_path / "hosts.yml"
    nodes = {"gpu-1": {}, "gpu-2": {}}
    inventory.write_text(json.dumps({"gpu_nodes": {"hosts": nodes, "vars": variables}}))
    program = Path(sys.executable).with_name("ansible-playbook")
    done = subprocess.run(
        [program, ROOT / "playbooks" / "report.yml", "-i", inventory, *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "PWD": str(tmp_path)},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\nOpen {directory}/report.html in a browser.\n" in done.stdout
    assert "changed=1" in done.stdout
