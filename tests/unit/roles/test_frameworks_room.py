# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role frameworks on a node whose disk is too small for an environment: nothing is tried, not even the index."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[3]
SIZE = 12 << 30
WHEELS = [{"file": f"big{number}-1-py3-none-any.whl", "sha256": f"{number}" * 64, "bytes": SIZE} for number in range(5)]


def received(place, wheels):
    """The exit status and the words of what copies the wheels of an environment from another node."""
    role = {"name": "allreduce.gpu.frameworks", "tasks_from": "receive", "rolespec_validate": False}
    return played(place, wheels, {"ansible.builtin.include_role": role})


def played(place, wheels, task):
    """The exit status and the words of a play with one task."""
    variables = {
        "__frameworks_name": "main",
        "__frameworks_from": {"downloader": "node", "source": "gpu-1", "address": "192.0.2.1"},
        "__frameworks_offered": {"main": wheels},
        "__frameworks_received": [],
        "__frameworks_environments": {"main": {}},
        "__frameworks_wheel_directory": str(place / "wheels"),
        "__python_env_root": str(place / "envs"),
        "frameworks_distribute_user": "nobody",
    }
    (place / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task]}]))
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    facts = {"gpu_stack": {"environments": []}, "gpu_node": {"gpus": []}, "gpu_node_state": {}}
    inventory = {"all": {"hosts": {"node": {**host, "ansible_facts": facts, "__frameworks_offered": {"main": wheels}}}}}
    (place / "hosts.json").write_text(json.dumps(inventory))
    (place / "facts.json").write_text(json.dumps(variables))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    settings = {"ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"), "ANSIBLE_NOCOLOR": "1"}
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "hosts.json", "play.yml", "-e", "@facts.json"]
    done = subprocess.run(command, cwd=place, env={**kept, **settings}, capture_output=True, text=True, check=False)
    return done.returncode, re.sub(r"\s+", " ", done.stdout + done.stderr)


def test_where_there_is_no_room_the_index_is_not_tried(tmp_path):
    found = os.statvfs(tmp_path)
    if found.f_bavail * found.f_frsize > 3 * sum(one["bytes"] for one in WHEELS):
        pytest.skip("there is room for what no disk of a test should have room for")
    status, said = received(tmp_path, WHEELS)

    assert status == 2, said
    assert re.search(
        r"Environment main cannot be installed on node: \S+/wheels/main has [\d.]+ [GM]iB free, and 180\.0 GiB are needed: free",
        said,
    ), said
    assert "comes from the package index" not in said


def test_where_another_node_cannot_be_reached_the_index_is_tried(tmp_path):
    status, said = received(tmp_path, [{**WHEELS[0], "bytes": 1}])

    assert status == 0, said
    assert "Environment main comes from the package index, not from gpu-1" in said


def test_wheels_go_also_where_a_download_failed_or_a_run_was_killed_before(tmp_path):
    (tmp_path / "wheels" / "main").mkdir(parents=True)
    (tmp_path / "wheels" / "main" / "big0-1-py3-none-any.whl.part").touch()
    tasks = yaml.safe_load((CHECKOUT / "roles" / "frameworks" / "tasks" / "bring.yml").read_text(encoding="utf-8"))
    status, said = played(tmp_path, [], next(one for one in tasks if one["name"].startswith("Remove the wheels")))

    assert status == 0, said
    assert list((tmp_path / "wheels").iterdir()) == []
