# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role firewall in check mode on this machine: what it asks of a node, and what it refuses."""

import json
import re
import subprocess
import sys

import pytest
import yaml

from tests.support.local_play import CHECKOUT, run_roles

ROLE = CHECKOUT / "roles" / "firewall"


def own_address():
    """An address that this machine has."""
    shown = subprocess.run(["ip", "-j", "address", "show"], capture_output=True, text=True, check=True).stdout
    return next(
        address["local"]
        for link in json.loads(shown)
        for address in link.get("addr_info", [])
        if "LOOPBACK" not in link["flags"] and address["family"] == "inet"
    )


def play(place, recorded=False, **variables):
    facts = {
        "gpu_stack": {},
        "gpu_node": {"gpus": [], "nics": []},
        "gpu_node_state": {"services": {}, "packages": {"nftables": "1"}, "records": ["firewall"] if recorded else []},
    }
    return run_roles(place, ["firewall"], facts, "--check", "--diff", "-e", json.dumps(variables))


def modules(run):
    return [row["module"].rpartition(".")[2] for row in run.executions if row["role"]]


def test_off_costs_nothing(tmp_path):
    run = play(tmp_path)
    assert run.status == 0, run.output
    assert modules(run) == []


def test_what_was_changed_and_is_off_is_put_back(tmp_path):
    run = play(tmp_path, recorded=True)
    assert run.status == 0, run.output
    assert modules(run)[:1] == ["firewall"] and "firewall_facts" not in modules(run)


@pytest.mark.parametrize("part", ["present", "absent"])
@pytest.mark.parametrize(("seconds", "confirms"), [(180, True), (0, False)])
def test_a_change_without_a_timer_needs_no_confirmation(tmp_path, part, seconds, confirms):
    """There would be none to confirm, and module firewall says so."""
    tasks = yaml.safe_load((ROLE / "tasks" / f"{part}.yml").read_text("utf-8"))
    (include,) = [one for one in tasks if one.get("ansible.builtin.include_tasks") == "confirm.yml"]
    known = {f"__firewall_{name}": {"changed": True} for name in ("applied", "removed")}
    task = {"ansible.builtin.debug": {"msg": "It confirms."}, "when": include["when"]}
    book = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {**known, "firewall_rollback_seconds": seconds},
        "tasks": [task],
    }
    (tmp_path / "play.yml").write_text(json.dumps([book]), "utf-8")
    command = [sys.executable, "-m", "ansible", "playbook", "play.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ("It confirms." in done.stdout) is confirms


def test_the_old_way_says_why_not(tmp_path):
    run = play(tmp_path, firewall_state="disabled")
    assert run.status == 0, run.output
    assert modules(run)[:1] == ["firewall"]
    assert "NCCL, gloo and the store of torchrun ask for no password" in re.sub(r"\s+", " ", run.output)


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"gpu_cluster_address": "203.0.113.7"}, "No interface of this node has 203.0.113.7"),
        ({"firewall_interfaces": ["none7"]}, "firewall_interfaces has none7, which this node lacks; choose from"),
        ({"firewall_extra_sources": ["head"]}, "firewall_extra_sources has 'head', which is not an IP address or a network"),
    ],
)  # fmt: skip
def test_what_is_refused_stops_before_anything_changes(tmp_path, variables, sentence):
    run = play(tmp_path, **{"firewall_state": "present", "gpu_cluster_address": own_address(), **variables})
    assert run.status != 0
    assert set(modules(run)) <= {"firewall_facts"}
    assert sentence in re.sub(r"\s+", " ", run.output)


def test_an_owner_that_nobody_knows_is_refused_without_a_look(tmp_path):
    run = play(tmp_path, firewall_state="present", firewall_owner="shorewall")
    assert run.status != 0 and modules(run) == [] and "nftables, firewalld, ufw" in re.sub(r"\s+", " ", run.output)


def test_the_connection_is_a_new_one_before_the_change_is_kept():
    tasks = yaml.safe_load((ROLE / "tasks" / "confirm.yml").read_text(encoding="utf-8"))
    assert tasks[0]["ansible.builtin.meta"] == "reset_connection"
    assert tasks[1]["allreduce.gpu.firewall"] == {"state": "confirmed"}
