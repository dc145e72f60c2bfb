# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it, with a program in the place of sacctmgr that prints what 22.05.8 printed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import slurm_accounting

COLLECTIONS = str(Path(slurm_accounting.__file__).resolve().parents[2] / ".collections")
# Recorded of a cluster with two QoS and an account; a change is noted, and fails.
PROGRAM = r"""#!/bin/sh
case "$*" in
  *"show qos"*) printf "%s\n" 'normal|0|||||' 'long|10|2-00:00:00|gres/gpu=8|gres/gpu=2|3|' ;;
  *OnlyDefaults*) printf "%s\n" 'root|root' 'physics|ada' ;;
  *WOPLimits*) printf "%s\n" 'cluster|root||||1|||normal|' 'cluster|root|root|||1||||' \
    'cluster|physics|||root|1|gres/gpu=6||long|long' 'cluster|physics|ada|||1||||' ;;
  *"show tres"*) printf "%s\n" 'cpu|' 'fs|disk' 'gres|gpu' ;;
  *) echo "$*" >> "$ASKED"; echo ' Problem with it.' >&2; exit 1 ;;
esac
"""
LONG = {"name": "long", "priority": 10, "max_minutes": 2880, "gpus": 8, "gpus_per_user": 2, "jobs_per_user": 3}
PHYSICS = {"name": "physics", "users": ["ada"], "gpus": 6, "qos": ["long"], "default_qos": "long"}


@pytest.fixture
def run(tmp_path):
    """Run the module; returns its answer. The commands that change something are in a file."""
    program = tmp_path / "sacctmgr"

    def found(installed=True, check=False, **options):
        if installed:
            program.write_text(PROGRAM, encoding="utf-8")
            program.chmod(0o755)
        arguments = {"cluster": "cluster", "wait": 0, **options, "_ansible_check_mode": check, "_ansible_diff": True}
        done = subprocess.run(
            [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.slurm_accounting"],
            input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
            capture_output=True,
            text=True,
            check=False,
            env={
                "PATH": f"{tmp_path}:{os.environ['PATH']}",
                "PYTHONPATH": COLLECTIONS,
                "ASKED": str(tmp_path / "asked"),
            },
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return found


@pytest.mark.parametrize("check", [True, False])
def test_as_declared(run, check):
    answer = run(check=check, qos=[LONG], accounts=[PHYSICS])
    assert (answer["changed"], answer["commands"]) == (False, [])
    assert answer["diff"]["before"] == answer["diff"]["after"]


def test_a_limit_that_differs_in_check_mode(run, tmp_path):
    answer = run(check=True, qos=[{**LONG, "gpus_per_user": 4}], accounts=[PHYSICS])
    assert answer["commands"] == [["modify", "qos", "where", "name=long", "set", "MaxTRESPerUser=gres/gpu=4"]]
    assert answer["changed"] and "gpus_per_user=2" in answer["diff"]["before"]
    assert "qos long: priority=10 max_minutes=2880 gpus=8 gpus_per_user=4 jobs_per_user=3\n" in answer["diff"]["after"]
    assert not (tmp_path / "asked").exists()


def test_a_change_that_fails(run, tmp_path):
    answer = run(qos=[{**LONG, "gpus_per_user": 4}], accounts=[PHYSICS])
    assert answer["failed"]
    assert answer["msg"].endswith("MaxTRESPerUser=gres/gpu=4 ended with 1: Problem with it.")
    asked = (tmp_path / "asked").read_text(encoding="utf-8")
    assert asked == "--immediate modify qos where name=long set MaxTRESPerUser=gres/gpu=4\n"


def test_before_anything_is_installed(run):
    answer = run(installed=False, check=True, qos=[LONG])
    assert answer["changed"] and answer["diff"]["before"] == ""
    assert "cannot be read yet, so that everything declared counts as new" in json.dumps(answer["warnings"])
    assert run(installed=False, qos=[LONG])["failed"]
