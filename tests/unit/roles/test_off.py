# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles whose part of the plan is empty do nothing on the host: not one module runs there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
ROLES = [
    "cuda_repository", "nvidia_driver", "fabric_manager", "gpu_settings", "gpu_local_fact", "cuda_toolkit", "cudnn", "nccl",
]  # fmt: skip
STACK = {
    "os": {"id": "debian", "version": "12", "family": "debian", "arch": "x86_64"},
    "gpus": [],
    **dict.fromkeys(["driver", "fabric_manager", "cuda", "cudnn", "nccl", "repository"]),
}
STATE = {"package_manager": "apt", "packages": {}, "leftover_packages": {}, "services": {}}


@pytest.fixture(scope="module")
def executions(tmp_path_factory):
    """[(role, module)] of what ran on the host, with a ping after each role that shows that it is seen."""
    place = tmp_path_factory.mktemp("off")
    facts = {"cacheable": True, "gpu_stack": STACK, "gpu_node": {"gpus": []}, "gpu_node_state": STATE}
    tasks = [{"ansible.builtin.set_fact": facts}]
    tasks += [{"ansible.builtin.include_role": {"name": f"allreduce.gpu.{role}"}} for role in ROLES]
    tasks.append({"ansible.builtin.ping": {}})
    (place / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (place / "hosts.json").write_text(json.dumps({"all": {"hosts": {"node": host}}}))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"),
        "ANSIBLE_CALLBACK_PLUGINS": str(CHECKOUT / "tests" / "bench" / "callback_plugins"),
        "ANSIBLE_CALLBACKS_ENABLED": "executions",
        "ALLREDUCE_COUNT_LOCAL": "1",
        "ALLREDUCE_EXECUTIONS": str(place / "executions.jsonl"),
        "ANSIBLE_NOCOLOR": "1",
    }
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "hosts.json", "play.yml"]
    process = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return [json.loads(line) for line in (place / "executions.jsonl").read_text().splitlines()]


def test_nothing_runs_on_the_host_for_what_is_off(executions):
    assert [row["role"] for row in executions] == [None], executions
