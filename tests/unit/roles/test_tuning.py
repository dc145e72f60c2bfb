# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role tuning in check mode on this machine: what it asks of a node, and what it refuses."""

import json
import os
import re
import subprocess
import sys

from tests.support.local_play import CHECKOUT, run_roles

ROLE = CHECKOUT / "roles" / "tuning"


def play(place, recorded=False, **variables):
    facts = {
        "gpu_stack": {},
        "gpu_node": {"gpus": [], "nics": []},
        "gpu_node_state": {"services": {}, "records": ["tuning"] if recorded else []},
    }
    return run_roles(place, ["tuning"], facts, "--check", "--diff", "-e", json.dumps(variables))


def modules(run):
    return [row["module"].rpartition(".")[2] for row in run.executions if row["role"]]


def test_off_costs_nothing(tmp_path):
    run = play(tmp_path)
    assert run.status == 0, run.output
    assert modules(run) == []


def test_what_was_tuned_and_is_off_is_put_back(tmp_path):
    run = play(tmp_path, recorded=True)
    assert run.status == 0, run.output
    assert modules(run) == ["tuning"]


def test_what_would_change_is_shown(tmp_path):
    limits = {"memlock": "unlimited", "nofile": 4096}
    run = play(tmp_path, tuning_state="present", tuning_limits=limits, tuning_limit_services=["slurmd"])
    assert run.status == 0, run.output
    assert modules(run)[:2] == ["tuning_facts", "tuning"]
    for path in (
        "security/limits.d",
        "systemd/system.conf.d",
        "systemd/user.conf.d",
        "systemd/system/slurmd.service.d",
    ):
        assert f"+++ after: /etc/{path}/90-allreduce.conf" in run.output
    assert "+* - nofile 4096" in run.output and "+DefaultLimitNOFILE=1024:4096" in run.output


def test_what_applies_the_rest_at_boot(tmp_path):
    """Container or not, by the role's own words: the program, its unit and the link that enables it."""
    (tmp_path / "templates").symlink_to(ROLE / "templates")
    task = {
        "ansible.builtin.copy": {"content": "{{ __tuning_boot_files | to_json }}", "dest": str(tmp_path / "files.json")}
    }
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars_files": [str(ROLE / "vars" / "main.yml")],
        "tasks": [task],
    }
    (tmp_path / "play.yml").write_text(json.dumps([play]), "utf-8")
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections")}
    command = [sys.executable, "-m", "ansible", "playbook", "play.yml"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    files = {one["path"]: one for one in json.loads((tmp_path / "files.json").read_text("utf-8"))}
    unit = "/etc/systemd/system/allreduce-tuning.service"
    assert "ExecStart=/usr/bin/python3 -I -B /opt/allreduce/lib/tuning\n" in files[unit]["content"]
    assert files["/etc/systemd/system/multi-user.target.wants/allreduce-tuning.service"]["link"] == unit
    program = tmp_path / "program"
    for path, one in files.items():
        if path.startswith("/opt/allreduce/lib/tuning/"):
            place = program / path.removeprefix("/opt/allreduce/lib/tuning/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(one["content"], "utf-8")
    ran = subprocess.run([sys.executable, "-I", "-B", program, "--check"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr[:53]) == (1, "/etc/allreduce/tuning.json cannot be applied: [Errno ")


def test_what_is_refused_stops_before_anything_changes(tmp_path):
    run = play(tmp_path, tuning_state="present", tuning_sysctl={"vm.zone_reclaim_mode": 1})
    assert run.status != 0
    assert modules(run) == []
    assert re.search(r"node is not tuned: tuning_sysctl sets vm.zone_reclaim_mode to '1', which is refused", run.output)
