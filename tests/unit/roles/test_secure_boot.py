# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where no key can be enrolled, role nvidia_driver says so before it does anything on the node."""

import json
import re
from pathlib import Path

import jinja2
import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.filter._plain import FilterModule

from tests.support.local_play import run_roles

TASKS = Path(__file__).resolve().parents[3] / "roles" / "nvidia_driver" / "tasks" / "secure_boot.yml"
DRIVER = {
    "version": "580.95.05", "branch": "580", "source": "nvidia", "package_manager": "apt", "dkms_module": "nvidia",
    "packages": [{"name": "nvidia-kernel-dkms", "version": "580.95.05-*"}], "held": ["nvidia-*"], "conflicting": [],
}  # fmt: skip
STACK = {
    "os": {"id": "debian", "version": "12", "family": "debian", "arch": "x86_64"},
    "gpus": [{"model": "A40", "count": 1}],
    "driver": DRIVER,
}


def refusal(place, shim=True, **variables):
    """What the role says on a host whose firmware does not know the key; and what it executed there."""
    boot = {"enforced": True, "shim": shim, "certificate": "/var/lib/dkms/mok.pub", "key": None}
    state = {"package_manager": "apt", "packages": {}, "secure_boot": boot, "kernel": {}, "driver": {}}
    facts = {"gpu_stack": STACK, "gpu_node": {"gpus": []}, "gpu_node_state": state}
    run = run_roles(place, ["nvidia_driver"], facts, "-e", json.dumps(variables))
    assert run.status == 2, run.output
    return re.sub(r"\s+", " ", run.output), [one for one in run.executions if one["role"]]


CASES = {
    "nobody at the console": (
        {"nvidia_driver_console": False, "nvidia_driver_signing_key_password": "secret"},
        "no key can be enrolled on node, because nobody can confirm it at the console (nvidia_driver_console)",
    ),
    "no shim": (
        {"shim": False, "nvidia_driver_signing_key_password": "secret"},
        "no key can be enrolled on node, because it boots without shim",
    ),
    "no password": (
        {},
        "node does not trust the key /var/lib/dkms/mok.pub that signs the driver's module: set nvidia_driver_signing_key_password",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_host_that_would_not_load_the_module_is_refused_at_once(tmp_path, case):
    variables, sentence = CASES[case]
    said, executions = refusal(tmp_path, **variables)
    assert sentence in said
    assert executions == []
    assert "secret" not in said


@pytest.mark.parametrize(
    ("stderr", "shown"),
    [
        (["Failed to enroll new keys"], "mokutil --import ended with 255 (Failed to enroll new keys)."),
        ([""], "mokutil --import ended with 255 (input password again:)."),
    ],
)
def test_what_mokutil_said_is_shown_and_not_its_prompts(stderr, shown):
    tasks = {task["name"]: task for task in yaml.safe_load(TASKS.read_text(encoding="utf-8"))}
    message = tasks["Fail if the firmware will not offer the key for enrolment"]["ansible.builtin.assert"]["fail_msg"]
    said = {"rc": 255, "stdout_lines": ["input password: ", "input password again: "], "stderr_lines": stderr}
    boot = {"certificate": "/var/lib/dkms/mok.pub"}
    variables = {"__nvidia_driver_enrolment": said, "__nvidia_driver_secure_boot": boot, "inventory_hostname": "node"}
    environment = jinja2.Environment()
    environment.filters = {**environment.filters, "allreduce.gpu._plain": FilterModule().filters()["_plain"]}
    assert shown in re.sub(r"\s+", " ", environment.from_string(message).render(variables))
