# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role nvidia_driver on two equal hosts, in check mode: who compiles the kernel module, and who waits for it; and what follows that."""

import json
import re

import pytest
import yaml

from tests.support.local_play import CHECKOUT, run_roles
from tests.unit.roles.test_check_mode import facts

pytestmark = pytest.mark.long

HOSTS = ("one", "two")


def run(place, builder):
    given = facts("ubuntu 22.04")
    given["gpu_node_state"]["secure_boot"] = {"enforced": False}
    done = run_roles(
        place, ["nvidia_driver"], given, "--check", "-e", json.dumps({"nvidia_driver_builder": builder}), hosts=HOSTS
    )
    assert done.status == 0, done.output
    modules = [str(row["module"]).rpartition(".")[2] for row in done.executions]
    said = re.sub(r"\s+", " ", done.output)
    return modules.count("kernel_module_archive"), re.findall(
        r"is compiled on (\w+), .*?Other hosts that get it: (\d)", said
    )


def test_one_host_compiles_and_the_other_waits(tmp_path):
    waits_and_ends_waiting = 2
    assert run(tmp_path, "first") == (waits_and_ends_waiting, [("one", "1")])


def test_without_a_builder_nobody_waits(tmp_path):
    assert run(tmp_path, "") == (0, [])


def test_a_build_that_fails_loses_no_reboot():
    """Parameters are written after it: the next run would find them as declared, and record no reboot that brings them into use."""
    tasks = yaml.safe_load((CHECKOUT / "roles/nvidia_driver/tasks/present.yml").read_text("utf-8"))
    (written,) = [number for number, task in enumerate(tasks) if task.get("register") == "__nvidia_driver_settings"]
    assert [task["ansible.builtin.command"]["argv"] for task in tasks[written + 1 :]] == [["modprobe", "nvidia"]]
