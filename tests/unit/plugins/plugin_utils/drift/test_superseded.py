# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of another driver must go, on hosts as they are found."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import Observed
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Driver
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.packages import superseded
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

KEPT = {"nvidia-container-toolkit": "1.19.0-1", "libnvidia-container1": "1.19.0-1", "linux-image-generic": "5.15.0.101",
        "nvlsm": "2025.06.5-1", "libnvidia-egl-wayland1": "1:1.1.9-1.1", "cuda-compat-12-4": "550.54.15-1"}  # fmt: skip


def superseded_packages(plan, host):
    return superseded(parse(Driver, plan), Observed(packages=host))


def driver(os, **request):
    question = {"os": os, "gpus": ["A40"], "request": {"pytorch": "none", **request}, "ansible_core": "2.16"}
    return resolve(question)["stack"]["driver"]


def installed(*plans, **more):
    """What is there after these drivers were installed, and what nobody should touch."""
    found = dict(KEPT)
    for plan in plans:
        for part in ("packages", "pinning_packages"):
            for one in plan[part]:
                found[one["name"]] = (one["version"] or plan["version"] + "-1").replace("*", "1")
    return {**found, **more}


SWITCHES = [
    ("ubuntu 22.04", {"driver": "535"}, {"driver": "550"}),
    ("ubuntu 22.04", {"driver": "550"}, {"driver": "580"}),
    ("ubuntu 22.04", {"driver": "580"}, {"driver": "535"}),
    ("ubuntu 22.04", {"driver": "580"}, {"driver": "595"}),
    ("ubuntu 22.04", {"driver": "595"}, {"driver": "580"}),
    ("ubuntu 22.04", {"driver": "580", "driver_source": "nvidia"}, {"driver": "580", "driver_source": "distribution"}),
    ("ubuntu 22.04", {"driver": "580", "driver_source": "distribution"}, {"driver": "580", "driver_source": "nvidia"}),
    ("ubuntu 22.04", {"driver": "550", "kernel_modules": "open"}, {"driver": "550", "kernel_modules": "proprietary"}),
    ("rocky 8", {"driver": "535"}, {"driver": "580"}),
    ("rocky 9", {"driver": "580"}, {"driver": "535"}),
    ("rocky 9", {"driver": "580", "kernel_modules": "open"}, {"driver": "580", "kernel_modules": "proprietary"}),
    ("debian 12", {"driver": "535"}, {"driver": "550"}),
    ("debian 12", {"driver": "580"}, {"driver": "535"}),
]


@pytest.mark.parametrize(("os", "before", "after"), SWITCHES)
def test_a_switch_leaves_nothing_of_the_old_driver(os, before, after):
    old, new = driver(os, **before), driver(os, **after)
    host = installed(old)
    gone = superseded_packages(new, host)
    wanted = {one["name"] for part in ("packages", "pinning_packages") for one in new[part]}
    assert set(gone) == set(host) - set(KEPT) - wanted
    assert superseded_packages(old, host) == []


def test_the_other_kernel_modules_go_although_they_are_of_the_branch():
    new = driver("ubuntu 22.04", driver="550", kernel_modules="open")
    gone = superseded_packages(new, {"nvidia-dkms-550": "550.54.15-0ubuntu1", "nvidia-utils-550": "550.54.15-0ubuntu1"})
    assert gone == ["nvidia-dkms-550"]


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("nvidia-driver-570-server", "570.211.01-0ubuntu1.22.04.1"),
        ("linux-modules-nvidia-535-server-generic", "5.15.0-101.111"),
        ("cuda-drivers-535", "535.183.01-1"),
        ("nvidia-firmware-535-535.104.12", "535.104.12-0ubuntu1"),
        ("nvidia-fabricmanager-535", "535.104.12-1"),
        ("libnvidia-gl-535", "535.104.12-0ubuntu1"),
    ],
)
def test_leftovers_by_other_hands_go(name, version):
    assert superseded_packages(driver("ubuntu 22.04", driver="580"), installed(**{name: version})) == [name]


@pytest.mark.parametrize("name", ["libnvidia-gl-580", "nvidia-settings", "nvidia-driver-580-open"])
def test_what_belongs_to_the_planned_branch_stays(name):
    assert superseded_packages(driver("ubuntu 22.04", driver="580"), installed(**{name: "580.65.06-0ubuntu1"})) == []
