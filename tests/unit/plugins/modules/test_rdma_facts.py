# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it: on a recorded tree, and on this machine, whatever it has."""

import json
import os
import subprocess
import sys
from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.modules import rdma_facts
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.rdma_helper import adapter, server

COLLECTIONS = str(Path(rdma_facts.__file__).resolve().parents[2] / ".collections")


def run(**options):
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.rdma_facts"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": options}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )
    answer = json.loads(done.stdout)
    assert answer["changed"] is False
    return answer["ansible_facts"]["gpu_rdma"]


def test_a_recorded_server(tmp_path):
    tree(tmp_path, server(adapter(0), adapter(1)))
    found = run(root=str(tmp_path), probe=True)
    assert [one["driver"] for one in found["adapters"]] == ["mlx5_core"] * 2
    assert found["gpudirect"]["cuda"]["code"] == "not_asked"


def test_a_recorded_host_without_adapters(tmp_path):
    tree(tmp_path, server())
    found = run(root=str(tmp_path))
    assert (found["adapters"], found["gpudirect"]) == ([], None)


def test_this_machine():
    found = run(probe=True)
    assert [one["name"] for one in found["adapters"]] == (
        sorted(os.listdir("/sys/class/infiniband")) if os.path.isdir("/sys/class/infiniband") else []
    )
