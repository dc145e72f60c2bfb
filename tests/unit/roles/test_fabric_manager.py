# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role fabric_manager by the boards of nodes: what check mode shows for HGX B200 and for a tray of GB200."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from jinja2.nativetypes import NativeEnvironment

from tests.support.local_play import run_roles
from tests.unit.roles.test_structure import ROLES

LOADED = {"loaded": "580.178.04", "installed": "580.178.04"}
OFF, ON = ({"enabled": value, "active": value} for value in (False, True))
DOMAIN = "abababab-abab-abab-abab-abababababab.1"
B200 = {"os": "ubuntu 22.04", "gpus": ["B200"] * 8}
GB200 = {"os": "ubuntu 24.04", "arch": "aarch64", "gpus": ["GB200"] * 4}
A40 = {"os": "ubuntu 22.04", "gpus": ["A40"]}


def play(tmp_path, host, module=None, domain=None, imex=OFF, **variables):
    """Run the role on a node with the driver of the plan, in check mode."""
    request = {"driver": "580.178.04", "pytorch": "none"}
    stack = resolve({**host, "nvswitches": 0, "request": request, "ansible_core": "2.16"})["stack"]
    modules = {"ib_umad": module} if module else {}
    state = {
        "package_manager": "apt", "packages": {"bash": "5.2"}, "driver": LOADED, "kernel_modules": modules,
        "services": {"nvidia-imex": imex, "nvidia-fabricmanager": OFF}, "apt_mirrors": [],
    }  # fmt: skip
    node = {"gpus": [], "fabric": {"manager_needed": None, "state": None, "domain": domain}}
    facts = {"gpu_stack": stack, "gpu_node": node, "gpu_node_state": state, "default_ipv4": {"address": "10.0.0.1"}}
    (tmp_path / "cluster.ini").write_text("[gpu_nodes]\nnode\n", encoding="utf-8")
    words = ["--check", "--diff", "-i", "cluster.ini", "-e", json.dumps(variables)]
    run = run_roles(tmp_path, ["fabric_manager"], facts, *words)
    assert run.status == 0, run.output
    return run


def services(output):
    return re.findall(r"(?m)^\+\+\+ after: service (\S+)\n(?:@@.*\n)?((?:[ +-].*\n)+)", output)


@pytest.mark.parametrize(("module", "loads"), [(None, True), ({"loaded": True, "at_boot": False}, False)])
def test_nvlink_5_gets_fabric_manager_subnet_manager_and_module(tmp_path, module, loads):
    run = play(tmp_path, B200, module)
    output = run.output
    for package in ("nvidia-fabricmanager 580.178.04-1ubuntu1", "nvlsm", "infiniband-diags"):
        assert re.search(rf"(?m)^\+{re.escape(package)}", output), output
    assert "+ib_umad\n" in _task(output, "Load the modules at boot").partition("/allreduce-fabric.conf")[2]
    assert any(str(row["module"]).endswith("command") for row in run.executions) == loads
    assert [name for name, _lines in services(output)] == ["nvidia-fabricmanager"]


def test_a_tray_gets_imex_with_the_nodes_of_its_rack(tmp_path):
    output = play(tmp_path, GB200, domain=DOMAIN).output
    assert "+nvidia-imex 580.178.04-1ubuntu1" in output
    assert "+10.0.0.1\n" in _task(output, "List the nodes that share memory").partition("/nodes_config.cfg")[2]
    # The record of what is held has the patterns of all that could come; no package and no file is the manager's.
    assert not [
        line
        for line in output.splitlines()
        if re.match(r"\+[^ ]*fabric-?manager|\+\+\+ after: .*fabric-?manager", line)
    ]
    assert [(name, "+active: yes" in lines) for name, lines in services(output)] == [("nvidia-imex", True)]


@pytest.mark.parametrize("declared", ["10.0.0.8, 10.0.0.9", ["10.0.0.8", "10.0.0.9"]])
def test_a_text_with_commas_is_a_list_of_nodes(tmp_path, declared):
    output = play(tmp_path, GB200, domain=DOMAIN, fabric_manager_imex_nodes=declared).output
    assert "+10.0.0.8\n+10.0.0.9\n" in _task(output, "List the nodes that share memory")


@pytest.mark.parametrize(("can_start", "then"), [(True, ["systemctl", "try-restart", "nvidia-imex"]), (False, [])])
def test_a_list_and_the_restart_that_reads_it_are_one_step(can_start, then):
    """A run that ends between the two would leave IMEX with the former list for good. With another driver it would not start."""
    tasks = yaml.safe_load((ROLES / "fabric_manager" / "tasks" / "imex.yml").read_text("utf-8"))
    (task,) = [one for one in tasks if "allreduce.gpu.config_files" in one]
    (file,) = task["allreduce.gpu.config_files"]["files"]
    assert NativeEnvironment().from_string(file["then"]).render(__fabric_manager_can_start=can_start) == then
    assert "notify" not in task


def test_imex_waits_for_the_addresses_of_its_peers(tmp_path):
    output = play(tmp_path, GB200, domain=None).output
    assert "nodes_config.cfg" not in output
    assert [(name, "+active: yes" in lines) for name, lines in services(output)] == [("nvidia-imex", False)]


@pytest.mark.parametrize(("imex", "stopped"), [(OFF, []), (ON, ["nvidia-imex"])])
def test_where_it_is_not_planned_imex_does_not_run(tmp_path, imex, stopped):
    output = play(tmp_path, A40, imex=imex).output
    assert [name for name, _lines in services(output)] == stopped


def _task(output, name):
    return output.partition(f"{name}]")[2].partition("\nTASK")[0]
