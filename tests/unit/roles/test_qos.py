# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role qos in check mode on this machine: what it asks of a node, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.local_play import CHECKOUT, run_roles
from tests.unit.plugins.module_utils.qos_helper import lacking

ROLE = CHECKOUT / "roles" / "qos"
HERE = next((path.name for path in sorted(Path("/sys/class/net").iterdir()) if (path / "device").exists()), None)
WHY_NOT = lacking("tc", "nft") or (None if HERE else "needs a network adapter")
needs_tc = pytest.mark.skipif(bool(WHY_NOT), reason=str(WHY_NOT))


def play(place, recorded=False, **variables):
    facts = {
        "gpu_stack": {"os": {"id": "debian", "version": "12", "family": "debian", "arch": "x86_64"}},
        "gpu_node": {"gpus": [], "nics": []},
        "gpu_node_state": {
            "services": {},
            "package_manager": "apt",
            "packages": {},
            "records": ["qos"] if recorded else [],
        },
    }
    return run_roles(place, ["qos"], facts, "--check", "--diff", "-e", json.dumps(variables))


def modules(run):
    return [row["module"].rpartition(".")[2] for row in run.executions if row["role"]]


def test_off_costs_nothing(tmp_path):
    run = play(tmp_path)
    assert run.status == 0, run.output
    assert modules(run) == []


def test_what_was_shaped_and_is_off_is_put_back(tmp_path):
    run = play(tmp_path, recorded=True)
    assert run.status == 0, run.output
    assert modules(run) == ["qos"]


@needs_tc
def test_what_would_change_is_shown(tmp_path):
    """The class table of an interface of this machine, the files of the boot, and the unit of the interface."""
    run = play(tmp_path, qos_state="present", qos_interfaces=[HERE], qos_rate="200mbit", gpu_cluster_address="10.0.0.1")
    assert run.status == 0, run.output
    assert "+class a11e:10 prio 0 rate 160mbit ceil 200mbit" in run.output
    for path in ("allreduce-qos.service", "allreduce-qos@.service"):
        assert f"+++ after: /etc/systemd/system/{path}" in run.output
    assert f"sys-subsystem-net-devices-{HERE}.device.wants/allreduce-qos@{HERE}.service" in run.output


@needs_tc
@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"qos_rate": "100gbit"}, "qos_rate is 100gbit, and HTB"),
        ({"qos_interfaces": ["nowhere0"]}, "qos_interfaces has nowhere0, which this node lacks; choose from"),
        ({"qos_cgroups": ["no.slice"]}, "qos_cgroups has no.slice, which does not exist below /sys/fs/cgroup"),
    ],
)
def test_what_is_refused_stops_before_anything_changes(tmp_path, variables, sentence):
    variables = {"qos_interfaces": [HERE], "qos_rate": "200mbit", **variables}
    run = play(tmp_path, qos_state="present", **variables)
    assert run.status != 0
    assert set(modules(run)) <= {"qos_facts"}
    assert sentence in run.output


def test_what_shapes_again(tmp_path):
    """By the role's own words: the program, its units, and the link that enables the one of the boot."""
    (tmp_path / "templates").symlink_to(ROLE / "templates")
    task = {
        "ansible.builtin.copy": {"content": "{{ __qos_boot_files | to_json }}", "dest": str(tmp_path / "files.json")}
    }
    content = [{
        "hosts": "localhost", "gather_facts": False, "vars_files": [str(ROLE / "vars" / "main.yml")], "tasks": [task],
    }]  # fmt: skip
    (tmp_path / "play.yml").write_text(json.dumps(content), "utf-8")
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections")}
    command = [sys.executable, "-m", "ansible", "playbook", "play.yml"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    files = {one["path"]: one for one in json.loads((tmp_path / "files.json").read_text("utf-8"))}
    units = "/etc/systemd/system/allreduce-qos"
    assert "ExecStart=/usr/bin/python3 -I -B /opt/allreduce/lib/qos\n" in files[f"{units}.service"]["content"]
    assert "ExecStart=/usr/bin/python3 -I -B /opt/allreduce/lib/qos %I\n" in files[f"{units}@.service"]["content"]
    assert all("NoNewPrivileges=yes\n" in files[f"{units}{kind}.service"]["content"] for kind in ("", "@"))
    link = "/etc/systemd/system/multi-user.target.wants/allreduce-qos.service"
    assert files[link]["link"] == f"{units}.service"
    program = tmp_path / "program"
    for path, one in files.items():
        if path.startswith("/opt/allreduce/lib/qos/"):
            place = program / path.removeprefix("/opt/allreduce/lib/qos/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(one["content"], "utf-8")
    ran = subprocess.run([sys.executable, "-I", "-B", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr[:42]) == (1, "/etc/allreduce/qos.json cannot be read: Ex")
