# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role health in check mode on this machine: what it asks of a node, what it writes, and what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.module_utils.health import installed

from tests.support.local_play import CHECKOUT, run_roles

ROLE = CHECKOUT / "roles" / "health"
OFF = {"enabled": False, "active": False, "outdated": False}
ON = {"enabled": True, "active": True, "outdated": False}
PRESENT = {"health_state": "present"}
INSTALLED = {"program": "0", "declaration": "{}"}


def play(place, health=None, timer=None, **variables):
    state = {
        "services": {"allreduce-health.timer": timer or OFF}, "packages": {}, "package_manager": "apt", "leftover_packages": {},
        "environments": {}, "health": health,
    }  # fmt: skip
    facts = {"gpu_stack": {}, "gpu_node": {"gpus": [], "nics": []}, "gpu_node_state": state}
    return run_roles(place, ["health"], facts, "--check", "--diff", "-e", json.dumps(variables))


def modules(run):
    return [row["module"].rpartition(".")[2] for row in run.executions if row["role"]]


def test_off_costs_nothing(tmp_path):
    run = play(tmp_path)
    assert run.status == 0, run.output
    assert modules(run) == []


def test_what_would_be_written_is_shown(tmp_path):
    run = play(tmp_path, **PRESENT, health_gpu_count=8, health_thresholds={"max_pcie_replays": 5})
    assert run.status == 0, run.output
    assert modules(run)[0] == "config_files"
    for path in (
        "/etc/allreduce/health.json",
        "/etc/systemd/system/allreduce-health.timer",
        "/opt/allreduce/lib/health/__main__.py",
    ):
        assert f"+++ after: {path}" in run.output
    assert '+    "gpu_count": 8' in run.output and '+    "max_pcie_replays": 5' in run.output
    assert "service allreduce-health.timer" in run.output


def test_what_is_there_is_removed(tmp_path):
    run = play(tmp_path, INSTALLED, ON)
    assert run.status == 0, run.output
    assert set(modules(run)) == {"config_files", "file"}
    assert "service allreduce-health.timer" in run.output


def test_a_removal_ends_with_what_tells_that_there_is_something_to_remove(tmp_path):
    """A run that is interrupted before goes on, and the metrics of a check that is on its way do not stay."""
    tasks = yaml.safe_load((ROLE / "tasks" / "absent.yml").read_text("utf-8"))
    steps = [next(key for key in one if "." in key).rpartition(".")[2] for one in tasks]
    assert steps == ["service", "file", "config_files"]
    assert "/var/lib/allreduce/health" in tasks[1]["loop"]
    files = list(written(tmp_path, tasks[2]["allreduce.gpu.config_files"]["files"]))
    assert files[0].endswith("/allreduce_health.prom") and files[-1] == installed.DECLARATION


@pytest.mark.parametrize("variables", [PRESENT, {**PRESENT, "health_textfile_directory": ""}, {}])
def test_metrics_do_not_stay_where_they_were(tmp_path, variables):
    """They would go on telling what the node was like on that day."""
    metrics = tmp_path / "allreduce_health.prom"
    metrics.write_text("# old\n", "utf-8")
    declared = {"program": "0", "declaration": json.dumps({"textfile_directory": str(tmp_path)})}
    run = play(tmp_path, declared, ON, **variables)
    assert run.status == 0, run.output
    assert f"--- before: {metrics}" in run.output and "-# old" in run.output


@pytest.mark.parametrize(("variables", "word"), [
    ({"health_thresholds": {"colour": 1}}, "colour"), ({"health_skip_checks": ["colour"]}, "colour"),
    ({"health_hook": "drain"}, "health_hook is drain"), ({"health_textfile_directory": "/a b"}, "health_textfile_directory is /a b"),
    ({"health_interval": 0}, "health_interval is 0"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused_before_the_node_is_asked(tmp_path, variables, word):
    run = play(tmp_path, **PRESENT, **variables)
    assert run.status != 0 and modules(run) == [] and word in run.output


def written(place: Path, files="{{ __health_files + __health_program + __health_directories }}", **variables) -> dict:
    """The files of the role, by its own words."""
    (place / "templates").symlink_to(ROLE / "templates")
    copy = {"content": "{{ (" + files.strip("{} ") + ") | to_json }}", "dest": str(place / "files.json")}
    book = {
        "hosts": "localhost", "gather_facts": False, "vars_files": [str(ROLE / "defaults" / "main.yml"), str(ROLE / "vars" / "main.yml")],
        "tasks": [{"ansible.builtin.copy": copy}],
    }  # fmt: skip
    (place / "play.yml").write_text(json.dumps([book]), "utf-8")
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections")}
    command = [sys.executable, "-m", "ansible", "playbook", "play.yml", "-e", json.dumps(variables)]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return {one["path"]: one for one in json.loads((place / "files.json").read_text("utf-8"))}


def test_the_program_runs_without_ansible(tmp_path):
    files = written(tmp_path)
    below = "/opt/allreduce/lib/health/"
    for path, one in files.items():
        if path.startswith(below):
            place = tmp_path / "program" / path.removeprefix(below)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(one["content"], "utf-8")
    command = [sys.executable, "-I", "-B", str(tmp_path / "program"), "--clear", "mlx5_0/1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # This machine has no declaration.
    assert done.returncode == 1 and "/etc/allreduce/health.json" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(("variables", "lines", "absent"), [
    ({}, ["TimeoutStartSec=75", "IPAddressDeny=any", "ReadWritePaths=-/var/lib/prometheus/node-exporter"], "AF_INET"),
    ({"health_hook": "/usr/local/sbin/drain", "health_hook_timeout": 20}, ["TimeoutStartSec=95"], "IPAddressDeny"),
    ({"health_textfile_directory": ""}, ["ReadWritePaths=-/var/lib/allreduce/health"], "prometheus"),
])  # fmt: skip
def test_the_unit_is_bounded_and_confined(tmp_path, variables, lines, absent):
    unit = written(tmp_path, **variables)["/etc/systemd/system/allreduce-health.service"]["content"]
    assert set(lines) <= set(unit.splitlines()) and absent not in unit
    assert {"NoNewPrivileges=yes", "ProtectSystem=strict"} <= set(unit.splitlines())


def test_disks_can_be_asked(tmp_path):
    """NVMe drives answer CAP_SYS_ADMIN (drivers/nvme/host/ioctl.c), ATA drives CAP_SYS_RAWIO (drivers/scsi/scsi_ioctl.c)."""
    files = written(tmp_path)
    lines = files["/etc/systemd/system/allreduce-health.service"]["content"].splitlines()
    assert "CapabilityBoundingSet=CAP_SYSLOG CAP_SYS_ADMIN CAP_SYS_RAWIO" in lines
    assert not [line for line in lines if line.startswith(("PrivateDevices=", "DevicePolicy=", "DeviceAllow="))]
    assert {"nvme.py", "nvme_log.py", "ata.py", "ata_log.py"} <= {Path(path).name for path in files}


@pytest.mark.parametrize(("create", "made"), [(False, False), ("yes", True), ("no", False)])
def test_the_directory_of_the_metrics_is_made_on_demand_only(tmp_path, create, made):
    assert ("/var/lib/prometheus/node-exporter" in written(tmp_path, health_textfile_create=create)) is made
