# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role rdma in check mode on this machine: what it asks of a node, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.local_play import CHECKOUT, run_roles

ROLE = CHECKOUT / "roles" / "rdma"
without_adapters = pytest.mark.skipif(Path("/sys/class/infiniband").exists(), reason="this machine has RDMA adapters")


def play(place, recorded=False, **variables):
    facts = {
        "gpu_stack": {"os": {"family": "debian", "id": "debian", "version": "12"}},
        "gpu_node": {"gpus": [], "nics": []},
        "gpu_node_state": {"services": {}, "records": ["rdma"] if recorded else []},
    }
    return run_roles(place, ["rdma"], facts, "--check", "--diff", "-e", json.dumps(variables))


def modules(run):
    return [row["module"].rpartition(".")[2] for row in run.executions if row["role"]]


def test_off_costs_nothing(tmp_path):
    run = play(tmp_path)
    assert run.status == 0, run.output
    assert modules(run) == []


def test_what_was_set_up_and_is_off_is_put_back(tmp_path):
    run = play(tmp_path, recorded=True)
    assert run.status == 0, run.output
    assert modules(run) == ["rdma"]


@without_adapters
def test_a_node_without_adapters_says_so_and_is_left_alone(tmp_path):
    """Whatever is declared for it: no package, no file, nothing but the question."""
    roce = {"dscp": 26, "priority": 3}
    run = play(tmp_path, rdma_state="present", rdma_roce=roce, rdma_names="pci", rdma_subnet_manager=True)
    assert run.status == 0, run.output
    assert modules(run) == ["rdma_facts"]
    assert "node has no RDMA adapter and is left alone." in run.output


@without_adapters
def test_what_a_node_had_whose_adapters_are_gone_is_put_back(tmp_path):
    run = play(tmp_path, recorded=True, rdma_state="present")
    assert run.status == 0, run.output
    assert modules(run) == ["rdma_facts", "rdma"]


def test_what_is_refused_stops_before_anything_changes(tmp_path):
    run = play(tmp_path, rdma_state="present", rdma_stack="doca")
    assert run.status != 0 and modules(run) == []
    assert "RDMA is not set up on node: rdma_stack is doca, whose repository's key cannot be verified" in run.output


def test_what_runs_when_an_interface_appears(tmp_path):
    """By the role's own words: the program and its unit."""
    (tmp_path / "templates").symlink_to(ROLE / "templates")
    copied = {"content": "{{ __rdma_unit_files | to_json }}", "dest": str(tmp_path / "files.json")}
    tasks = [{"ansible.builtin.copy": copied}]
    plays = [
        {"hosts": "localhost", "gather_facts": False, "vars_files": [str(ROLE / "vars" / "main.yml")], "tasks": tasks}
    ]
    (tmp_path / "play.yml").write_text(json.dumps(plays), "utf-8")
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections")}
    command = [sys.executable, "-m", "ansible", "playbook", "play.yml"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    files = {one["path"]: one for one in json.loads((tmp_path / "files.json").read_text("utf-8"))}
    unit = files["/etc/systemd/system/allreduce-rdma@.service"]["content"]
    assert "ExecStart=/usr/bin/python3 -I -B /opt/allreduce/lib/rdma %I\n" in unit
    assert "BindsTo=sys-subsystem-net-devices-%i.device\n" in unit
    program = tmp_path / "program"
    for path, one in files.items():
        if path.startswith("/opt/allreduce/lib/rdma/"):
            place = program / path.removeprefix("/opt/allreduce/lib/rdma/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(one["content"], "utf-8")
    ran = subprocess.run(
        [sys.executable, "-I", "-B", program, "--check", "ens1"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr[:51]) == (1, "/etc/allreduce/rdma.json cannot be applied: [Errno ")
