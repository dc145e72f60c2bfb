# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a package manager has to do; what is superseded has tests of its own."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import Observed
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Component, Driver, Package
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.packages import (
    Changes,
    changes,
    compare_packages,
    compare_unwanted,
    named,
    others,
    superseded,
)

PLANNED = Package("nccl", "2.27.*")


@pytest.mark.parametrize(
    ("packages", "observed", "status", "remedy"),
    [
        ({"nccl": "2.27.7-1"}, "2.27.7-1", Status.AS_PLANNED, Remedy.NONE),
        ({"nccl": "1:2.27.7-1"}, "1:2.27.7-1", Status.AS_PLANNED, Remedy.NONE),
        ({"nccl": "2.21.5-1"}, "2.21.5-1", Status.DIFFERS, Remedy.INSTALL),
        ({"other": "2.27.7-1"}, "", Status.MISSING, Remedy.INSTALL),
        ({}, "", Status.MISSING, Remedy.INSTALL),
        (None, "", Status.UNKNOWN, Remedy.MEASURE),
    ],
)
def test_a_planned_package(packages, observed, status, remedy):
    compared = compare_packages("nccl", [PLANNED], Observed(packages=packages))
    assert compared == [Comparison("nccl", "nccl", "2.27.*", observed, status, remedy, "package")]
    assert changes(compared, [PLANNED]) == Changes((PLANNED,) if remedy is Remedy.INSTALL else ())


def test_a_package_of_any_version():
    (one,) = compare_packages("cuda", [Package("cuda")], Observed(packages={"cuda": "1"}))
    assert (one.desired, one.status) == ("any version", Status.AS_PLANNED)


def test_what_must_go_is_installed_or_only_configured():
    observed = Observed(packages={"a": "1", "b": None}, leftover_packages={"c": "3", "a": "0"})
    compared = compare_unwanted("driver", ["a", "b", "c", "d"], observed)
    assert [(one.subject, one.observed) for one in compared] == [("a", "1"), ("b", "installed"), ("c", "3")]
    assert {(one.status, one.remedy) for one in compared} == {(Status.UNWANTED, Remedy.REMOVE)}
    assert changes(compared, []) == Changes(remove=("a", "b", "c"))


def test_changes_are_in_the_order_of_the_plan_and_only_of_packages():
    plan = [Package("b", "2"), Package("a"), Package("c")]
    compared = compare_packages("x", reversed(plan), Observed(packages={"c": "1"}))
    module = Comparison("x", "c", "", "", Status.MISSING, Remedy.INSTALL, "module")
    found = changes([*compared, module], plan)
    assert found == Changes((Package("b", "2"), Package("a")))
    assert found
    assert not changes([module], plan)


def test_names_that_patterns_fit():
    packages = {"libnccl2": "1", "libnccl-dev": "1", "nccl": "1", "LIBNCCL3": "1"}
    assert named(["libnccl*"], packages) == ["libnccl-dev", "libnccl2"]
    assert named([], packages) == []


@pytest.mark.parametrize(
    ("present", "leftover", "expected"),
    [
        ({"libcudnn8": "8", "libcudnn9": "9"}, {}, ["libcudnn8"]),
        ({"libcudnn9": "9"}, {"libcudnn7": "7"}, ["libcudnn7"]),
        ({"libcudnn9": "9", "bash": "5"}, {}, []),
        (None, {}, []),
    ],
)
def test_packages_of_another_version_under_another_name(present, leftover, expected):
    planned = Component(packages=(Package("libcudnn9", "9.1"),))
    assert others(planned, ("libcudnn*",), Observed(packages=present, leftover_packages=leftover)) == expected


DRIVER = Driver(
    branch="535",
    held=("nvidia-*", "libnvidia-*"),
    conflicting=("nvidia-dkms-535-open",),
    packages=(Package("nvidia-driver-535"), Package("nvidia-modprobe")),
    pinning_packages=(Package("nvidia-driver-pinning-535.309.01"),),
)


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("nvidia-driver-550", "550.1-1", True),
        ("nvidia-driver-550", None, True),
        ("nvidia-settings", "550.1-1", True),
        ("nvidia-settings", "1:550.1-1", True),
        ("nvidia-settings", "535.1-1", False),
        ("nvidia-settings", None, False),
        ("nvidia-container-toolkit", "1.19.0-1", False),
        ("libnvidia-gl-535", "550.1-1", True),
        ("nvidia-dkms-535-open", "535.309.01-1", True),
        ("nvidia-dkms-535", "535.309.01-1", False),
        # Wanted under this name: it is up- or downgraded.
        ("nvidia-modprobe", "550.1-1", False),
        ("nvidia-driver-pinning-535.309.01", "1", False),
        # Nothing of the driver's, whatever its version.
        ("cuda-compat-12-4", "550.54.15-1", False),
    ],
)
@pytest.mark.parametrize("place", ["packages", "leftover_packages"])
def test_superseded(name, version, expected, place):
    assert superseded(DRIVER, Observed(**{place: {name: version}})) == ([name] if expected else [])
