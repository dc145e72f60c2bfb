# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVIDIA Container Toolkit comes in the planned version, is held, and the CDI specification is that of the loaded driver.

Debian, apt and systemd are real. nvidia-ctk and its units are stand-ins of the lab's mirror: they ask the machine's NVML and fail where
NVIDIA's fail. That an engine starts a container with a GPU is not proven.
"""

import json

import pytest
from cluster import KEEP, Cluster

pytestmark = pytest.mark.lab

PLAYBOOK = "tests/scenarios/container_toolkit.yml"
GENERATED, REFRESHED = "/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"
# The driver's packages are not what is tested: libraries of these names, and the program that units look for, are what they would bring.
LIBRARIES = "cd /usr/lib/x86_64-linux-gnu; touch libcuda.so.{0} libnvidia-ml.so.{0} /usr/bin/nvidia-smi; "
LOAD = LIBRARIES + "sh /srv/machine/files/lab-machine load"
DRIVER = "550.54.15"


class Node:
    """One node with a driver, which stays what it is."""

    def __init__(self):
        self.cluster = Cluster(
            "ctk", 1, "--distribution", "debian12", "--mirror", "--machine", "a100-nvlink", "--wheels", "uv"
        )
        self.name = self.cluster.hosts[0]
        self.on(LOAD.format(DRIVER))

    def on(self, command, check=True):
        return self.cluster.on(self.name, command, check)

    def play(self, toolkit, *options, **variables):
        """The number of changed tasks."""
        given = {"gpu_stack_request": {"container_toolkit": toolkit, "pytorch": "none"}, **variables}
        run = self.cluster.play(PLAYBOOK, "-e", json.dumps(given), *options)
        assert run.status == 0, run.output[-6000:]
        return run.recap[self.name]["changed"]

    def packages(self):
        """{package: version} of what is installed of the toolkit."""
        text = self.on(
            "dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\n' '*nvidia-container*'", check=False
        )
        rows = [line.split() for line in text.splitlines()]
        return {row[0]: row[1] for row in rows if len(row) == 3 and row[2][1] == "i"}

    def specification(self, path):
        """The driver's version in a specification; None where there is none."""
        text = self.on(f"grep -o 'libcuda.so.[0-9.]*' {path} | head -n 1", check=False)
        return text.strip().removeprefix("libcuda.so.") or None


@pytest.fixture(scope="module")
def node():
    made = Node()
    yield made
    if not KEEP:
        made.cluster.down()


def test_10_it_comes_in_one_version_and_a_second_run_changes_nothing(node):
    assert node.play("1.17")
    assert node.play("1.17") == 0
    assert node.packages() == dict.fromkeys(
        [
            "libnvidia-container-tools",
            "libnvidia-container1",
            "nvidia-container-toolkit",
            "nvidia-container-toolkit-base",
        ],
        "1.17.3-1",
    )
    assert "nvidia.com/gpu" in node.on(f"cat {GENERATED}")
    assert node.specification(GENERATED)


def test_20_nobody_else_upgrades_it(node):
    held = node.on("apt-mark showhold").split()
    assert set(node.packages()) <= set(held)
    node.on("apt-get -qq upgrade -y")
    assert set(node.packages().values()) == {"1.17.3-1"}


def test_30_a_specification_for_another_driver_is_generated_again(node):
    version = node.specification(GENERATED)
    node.on(f"sed -i 's/libcuda.so.{version}/libcuda.so.1.2.3/' {GENERATED}")
    node.play("1.17", "--check")
    assert node.specification(GENERATED) == "1.2.3"
    assert node.play("1.17")
    assert node.specification(GENERATED) == version
    assert node.play("1.17") == 0


def test_40_a_newer_release_writes_it_by_a_service_of_its_own(node):
    assert node.play("1.19.1")
    assert node.play("1.19.1") == 0
    assert (node.specification(GENERATED), bool(node.specification(REFRESHED))) == (None, True)
    assert node.on("systemctl is-active nvidia-cdi-refresh.path").strip() == "active"
    node.on(f"rm {REFRESHED}")
    assert node.play("1.19.1")
    assert node.specification(REFRESHED)


def test_50_it_goes(node):
    assert node.play("1.19.1", container_toolkit_state="absent")
    assert node.packages() == {}
    assert node.on(f"ls {GENERATED} {REFRESHED}", check=False) == ""
    assert node.on("apt-mark showhold").strip() == ""
    assert node.play("1.19.1", container_toolkit_state="absent") == 0
