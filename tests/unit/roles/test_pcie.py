# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role pcie in check mode on this machine: what it asks of a node; and its modules on a recorded one."""

import json
import os
import subprocess
import sys

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.pcie.answer import SUBJECT
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils import pcie_helper as helper
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import snapshot

from tests.support.local_play import CHECKOUT, run_roles
from tests.support.subjects import decided

CLEAR = {"pcie_state": "present", "pcie_acs_redirect": "clear"}


def play(place, recorded=False, **variables):
    facts = {
        "gpu_stack": {},
        "gpu_node": {"gpus": [], "nics": []},
        "gpu_node_state": {"services": {}, "records": ["pcie"] if recorded else []},
    }
    return run_roles(place, ["pcie"], facts, "--check", "--diff", "-e", json.dumps(variables))


@pytest.mark.parametrize(
    ("recorded", "variables", "expected"),
    [
        (False, {}, []),
        (True, {}, ["tuning"]),
        (False, {"pcie_state": "present"}, []),
        (True, {"pcie_state": "present"}, ["tuning"]),
        (False, CLEAR, ["pcie_facts", "tuning"]),
        (False, {"pcie_state": "present", "pcie_max_read_request": 100}, None),
    ],
)
def test_what_runs_on_the_node(tmp_path, recorded, variables, expected):
    run = play(tmp_path, recorded, **variables)
    assert (run.status == 0) is (expected is not None), run.output
    assert [row["module"].rpartition(".")[2] for row in run.executions if row["role"]] == (expected or [])
    refusal = "PCIe of node stays as it is. pcie_max_read_request is 100; choose from"
    assert (refusal in run.output) is (expected is None)


def module(name, root, **options):
    done = subprocess.run(
        [sys.executable, "-m", f"ansible_collections.allreduce.gpu.plugins.modules.{name}"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": {"root": str(root), "_ansible_diff": True, **options}}),
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(CHECKOUT / ".collections")},
    )  # fmt: skip
    return json.loads(done.stdout)


def measured(root):
    return module("pcie_facts", root)["ansible_facts"]


def test_there_and_back_on_a_recorded_machine(tmp_path):
    helper.record(machines.hgx_h100(), tmp_path)
    before, plan = snapshot(tmp_path), decided(SUBJECT, CLEAR, measured(tmp_path))["plan"]
    wanted = {"record": "pcie", "files": plan["files"], "values": plan["values"]}
    shown = module("tuning", tmp_path, **wanted, _ansible_check_mode=True)
    assert shown["changed"] and snapshot(tmp_path) == before
    assert "0000:12:00.0/config#ECAP_ACS+06.w:002c: 000c\n" in shown["diff"][-1]["before"]
    assert len(module("tuning", tmp_path, **wanted)["changes"]) == 25
    assert {one["acs"] for one in measured(tmp_path)["gpu_pcie"]["bridges"].values()} == {None, 0x11, 0x1D}
    assert measured(tmp_path)["gpu_pcie"]["recorded"] is True
    assert decided(SUBJECT, CLEAR, measured(tmp_path))["plan"] == plan
    assert module("tuning", tmp_path, **wanted)["changed"] is False
    assert module("tuning", tmp_path, record="pcie", state="absent")["changed"]
    assert snapshot(tmp_path) == before
