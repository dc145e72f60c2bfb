# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL's file on this machine in check mode: what the role asks of a node; and on a recorded tree, the way there and back."""

import json
import os
import subprocess
import sys

import pytest
import yaml
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import snapshot

from tests.support.local_play import CHECKOUT, run_roles

PRESENT = {"nccl_conf_state": "present"}
OURS = {"path": "/etc/nccl.conf", "content": "# ours\nNCCL_IB_HCA==mlx5_0\n", "mode": "0644"}
THEIRS = b"NCCL_DEBUG = WARN\r\n\xff no text"


def play(place, recorded=False, **variables):
    facts = {
        "gpu_stack": {"nccl": None, "cuda": None},
        "gpu_node": {"gpus": [], "nics": []},
        "gpu_node_state": {
            "services": {},
            "packages": {},
            "package_manager": "apt",
            "records": ["nccl_conf"] if recorded else [],
        },
        "default_ipv4": {},
    }
    return run_roles(place, ["nccl"], facts, "--check", "--diff", "-e", json.dumps(variables))


def modules(run):
    return [row["module"].rpartition(".")[2] for row in run.executions if row["role"]]


@pytest.mark.parametrize(
    ("recorded", "variables", "expected"),
    [
        (False, {}, []),
        (True, {}, ["tuning"]),
        (False, PRESENT, ["nccl_facts", "tuning"]),
        (False, {**PRESENT, "nccl_conf_variables": {"NCCL_X": " a"}}, None),
    ],
)
def test_what_runs_on_the_node(tmp_path, recorded, variables, expected):
    run = play(tmp_path, recorded, **variables)
    assert (run.status == 0) is (expected is not None), run.output
    assert modules(run) == (expected or [])  # what cannot be meant is refused before the node is asked
    assert ("nccl_conf_variables sets NCCL_X to ' a'" in run.output) is (expected is None)


def test_the_file_is_shown(tmp_path):
    run = play(tmp_path, **PRESENT, nccl_conf_variables={"NCCL_IB_TC": 106})
    assert run.status == 0, run.output
    assert "+++ after: /etc/nccl.conf" in run.output and "+NCCL_IB_TC=106" in run.output


def module(root, **options):
    arguments = {"root": str(root), "record": "nccl_conf", "_ansible_diff": True, **options}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.tuning"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}), capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / ".collections")},
    )  # fmt: skip
    answer = json.loads(done.stdout)
    json.dumps(answer, ensure_ascii=False).encode()  # Ansible takes no answer that is not UTF-8
    return answer


@pytest.mark.parametrize("before", [None, THEIRS])
def test_there_and_back(tmp_path, before):
    """A file that somebody has written comes back with every byte, whatever another role records beside it."""
    tree(tmp_path, {"/etc/hostname": "", "/proc/sys/vm/swappiness": "60", "/var/lib/allreduce/keep": ""})
    if before is not None:
        (tmp_path / "etc/nccl.conf").write_bytes(before)
        (tmp_path / "etc/nccl.conf").chmod(0o600)
    recorded = snapshot(tmp_path)
    assert module(tmp_path, files=[OURS], _ansible_check_mode=True)["changed"] and snapshot(tmp_path) == recorded
    assert module(tmp_path, files=[OURS])["changed"]
    assert module(tmp_path, files=[OURS])["changed"] is False
    other = {"path": "/etc/sysctl.d/90-allreduce.conf", "content": "vm.swappiness = 10\n", "mode": "0644"}
    assert module(tmp_path, record="tuning", files=[other])["changed"]
    assert (tmp_path / "etc/nccl.conf").read_text() == OURS["content"]
    assert module(tmp_path, record="tuning", state="absent")["changed"]
    assert module(tmp_path, state="absent")["changed"]
    assert snapshot(tmp_path) == recorded
    if before is not None:
        assert (tmp_path / "etc/nccl.conf").stat().st_mode & 0o777 == 0o600


def test_the_tests_are_built_for_those_who_train_whatever_the_umask(tmp_path):
    role = CHECKOUT / "roles" / "nccl"
    tasks = yaml.safe_load((role / "tasks" / "tests.yml").read_text(encoding="utf-8"))
    (build,) = [task["ansible.builtin.command"]["argv"] for task in tasks if task["name"] == "Build the tests"]
    assert build.startswith("{{ __nccl_tests_umask + ['make', ")
    wrapper = yaml.safe_load((role / "vars" / "main.yml").read_text(encoding="utf-8"))["__nccl_tests_umask"]
    before = os.umask(0o077)
    try:
        subprocess.run([*wrapper, "mkdir", str(tmp_path / "a build")], check=True)
    finally:
        os.umask(before)
    assert (tmp_path / "a build").stat().st_mode & 0o777 == 0o755
