# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver: what is loaded, kernel modules that packages or NVIDIA's installer bring, what must go."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import (
    DkmsBuild,
    InstalledDriver,
    Kernel,
    Observed,
    SecureBoot,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import (
    Component,
    Driver,
    Package,
    Precompiled,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.driver import (
    compare_absent,
    compare_driver,
    unwanted_packages,
)

A, B, THIRD = "6.1.0-39-amd64", "6.1.0-40-amd64", "6.1.0-37-amd64"
NEW, OLD = "535.309.01", "535.261.03"
KERNEL = Kernel(running=A, installed=(THIRD, A, B), headers=(A, B), newest=B)
DKMS = Driver(version=NEW, branch="535", dkms_module="nvidia")
PREBUILT = Driver(version=NEW, branch="535")
RUNFILE = Driver(version=NEW, branch="535", source="runfile", conflicting=("nvidia-driver*", "nvidia-fabricmanager*"))


def build(kernel, version=NEW, status="installed"):
    return DkmsBuild("nvidia", version, kernel, "x86_64", status)


def found(planned, kind, has_gpu=True, **state):
    observed = Observed(**{"packages": {}, "kernel": KERNEL, **state})
    return [one for one in compare_driver(planned, observed, has_gpu) if one.kind == kind]


def brief(comparisons):
    return [(one.subject, one.status, one.remedy) for one in comparisons]


LOADED = [
    (NEW, NEW, (Status.AS_PLANNED, Remedy.NONE)),
    (None, NEW, (Status.MISSING, Remedy.LOAD)),
    (OLD, NEW, (Status.DIFFERS, Remedy.REBOOT)),
    (OLD, None, None),
    (None, None, None),
]


@pytest.mark.parametrize(("loaded", "installed", "expected"), LOADED)
def test_the_loaded_module_is_the_installed_one(loaded, installed, expected):
    state = {"driver": InstalledDriver(loaded, installed)}
    assert brief(found(DKMS, "state", **state)) == ([("loaded module", *expected)] if expected else [])
    assert found(DKMS, "state", has_gpu=False, **state) == []


KEYS = {
    "enrolled": (Status.AS_PLANNED, Remedy.NONE),
    "pending": (Status.DIFFERS, Remedy.CONFIRM),
    "unknown": (Status.DIFFERS, Remedy.ENROL),
    None: (Status.MISSING, Remedy.ENROL),
}


@pytest.mark.parametrize("key", KEYS)
def test_the_key_of_a_module_that_is_built_here_is_trusted_where_signatures_are_demanded(key):
    for planned in (DKMS, RUNFILE):
        enforced = {"secure_boot": SecureBoot(enforced=True, key=key)}
        assert brief(found(planned, "key", **enforced)) == [("signing key", *KEYS[key])]
        assert found(planned, "key", has_gpu=False, **enforced) == []
        for boot in (SecureBoot(enforced=False, key=key), SecureBoot(key=key)):
            assert found(planned, "key", secure_boot=boot) == []


def test_a_planned_module_that_is_loaded_proves_that_it_may_be():
    boot = SecureBoot(enforced=True, key="unknown")
    assert found(DKMS, "key", secure_boot=boot, driver=InstalledDriver(NEW, NEW)) == []
    assert found(DKMS, "key", secure_boot=boot, driver=InstalledDriver("470.256.02", "470.256.02")) != []


def test_what_comes_signed_needs_no_key():
    boot = SecureBoot(enforced=True, key="unknown")
    for planned in (PREBUILT, Driver(version=NEW, dkms_module="nvidia", precompiled=Precompiled())):
        assert found(planned, "key", secure_boot=boot) == []


@pytest.mark.parametrize(
    ("key", "remedy"), [("enrolled", Remedy.LOAD), ("pending", Remedy.REBOOT), (None, Remedy.REBOOT)]
)
def test_a_module_whose_key_is_not_trusted_is_not_tried(key, remedy):
    state = {"driver": InstalledDriver(None, NEW), "secure_boot": SecureBoot(enforced=True, key=key)}
    assert brief(found(DKMS, "state", **state)) == [("loaded module", Status.MISSING, remedy)]


def test_a_loaded_module_that_was_not_measured_is_unknown():
    assert brief(found(DKMS, "state", driver=None)) == [("loaded module", Status.UNKNOWN, Remedy.MEASURE)]


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        (InstalledDriver(NEW, NEW), (Status.AS_PLANNED, Remedy.NONE)),
        (InstalledDriver(OLD, OLD), (Status.DIFFERS, Remedy.INSTALL)),
        (InstalledDriver(None, None), (Status.MISSING, Remedy.INSTALL)),
        (None, (Status.UNKNOWN, Remedy.MEASURE)),
    ],
)
def test_only_of_the_runfile_the_version_is_that_of_the_module(driver, expected):
    assert brief(found(RUNFILE, "version", driver=driver)) == [("version", *expected)]
    assert found(DKMS, "version", driver=driver) == []


@pytest.mark.parametrize("driver", [PREBUILT, Driver(version=NEW, dkms_module="nvidia", precompiled=Precompiled())])
@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ({A: True, B: True}, [(A, Status.AS_PLANNED, Remedy.NONE), (B, Status.AS_PLANNED, Remedy.NONE)]),
        ({A: True, B: False}, [(A, Status.AS_PLANNED, Remedy.NONE), (B, Status.MISSING, Remedy.INSTALL)]),
        ({A: False, B: False}, [(A, Status.MISSING, Remedy.INSTALL), (B, Status.MISSING, Remedy.INSTALL)]),
        ({A: True}, [(A, Status.AS_PLANNED, Remedy.NONE), (B, Status.UNKNOWN, Remedy.MEASURE)]),
        ({}, [(A, Status.UNKNOWN, Remedy.MEASURE), (B, Status.UNKNOWN, Remedy.MEASURE)]),
    ],
)
def test_modules_that_come_compiled(driver, listed, expected):
    kernel = Kernel(running=A, installed=(A, B), newest=B, driver_modules=listed)
    assert brief(found(driver, "module", kernel=kernel, dkms=(build(A), build(B)))) == expected


def test_modules_that_come_compiled_need_a_kernel_that_a_package_brought():
    """A container, or a kernel of the site's own: nobody can tell whether its next boot has the module."""
    for kernel in (Kernel(running="host"), Kernel(running=A, installed=(), driver_modules={A: True})):
        assert brief(found(PREBUILT, "module", kernel=kernel)) == [("kernel module", Status.UNKNOWN, Remedy.MEASURE)]
    assert found(RUNFILE, "module", kernel=Kernel(running="host")) == []  # its version tells


@pytest.mark.parametrize(
    ("dkms", "kernel"), [(None, KERNEL), ((build(A), build(B)), Kernel(running="host")), ((), Kernel())]
)
def test_modules_of_dkms_that_cannot_be_compared_are_unknown(dkms, kernel):
    assert brief(found(DKMS, "module", kernel=kernel, dkms=dkms)) == [("kernel module", Status.UNKNOWN, Remedy.BUILD)]


def test_a_difference_names_module_and_version():
    (one,) = [one for one in found(DKMS, "module", dkms=(build(A, OLD), build(B))) if one.differs]
    assert (one.desired, one.observed, one.status) == (f"nvidia {NEW}", f"nvidia {OLD}", Status.DIFFERS)
    missing = found(DKMS, "module", dkms=())
    assert [(one.desired, one.observed) for one in missing] == [(f"nvidia {NEW}", "")] * 2


HELD = Driver(version=NEW, branch="535", held=("nvidia-*",), packages=(Package("nvidia-driver"),))
PRESENT = {"nvidia-driver": NEW, "nvidia-driver-550": "550.1", "nvidia-dkms-535": NEW, "bash": "5"}


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        (HELD, ["nvidia-driver-550"]),
        (Driver(branch="535", held=("nvidia-*",), conflicting=("nvidia-dkms-535",)),
         ["nvidia-dkms-535", "nvidia-driver-550"]),
        (Driver(branch="535", precompiled=Precompiled(replaces=("nvidia-dkms-535", "nvidia-kernel-source-535"))),
         ["nvidia-dkms-535"]),
        (RUNFILE, ["nvidia-driver", "nvidia-driver-550"]),
        (Driver(source="runfile", conflicting=("nvidia-*",), packages=(Package("nvidia-dkms-535"),)),
         ["nvidia-driver", "nvidia-driver-550"]),
    ],
)  # fmt: skip
def test_packages_that_must_go(driver, expected):
    assert unwanted_packages(driver, Observed(packages=PRESENT)) == expected
    assert unwanted_packages(driver, Observed(packages=None)) == []


@pytest.mark.parametrize(
    ("driver", "name"),
    [
        (RUNFILE, "nvidia-fabricmanager"),
        (Driver(branch="595", held=("nvidia-*",), conflicting=("*-595",)), "nvidia-fabricmanager-595"),
    ],
)
def test_the_planned_fabric_manager_stays_although_the_patterns_of_the_driver_name_it(driver, name):
    """Its role would install it again, and each run would remove and install it."""
    observed = Observed(packages={name: "595.1"})

    def removed(fabric_manager):
        compared = compare_driver(driver, observed, True, (None, fabric_manager))
        return [one.subject for one in compared if one.remedy is Remedy.REMOVE]

    assert removed(Component(packages=(Package(name, "595.*"),))) == []
    assert removed(Component(packages=(Package("another"),))) == [name]
    assert removed(None) == [name]


def test_of_a_driver_that_shall_be_absent_all_that_is_installed_goes():
    compared = compare_absent(("nvidia-d*",), Observed(packages=PRESENT))
    assert brief(compared) == [
        (name, Status.UNWANTED, Remedy.REMOVE) for name in ("nvidia-dkms-535", "nvidia-driver", "nvidia-driver-550")
    ]
    assert compare_absent(("nvidia-d*",), Observed(packages=None)) == []


@pytest.mark.parametrize(
    ("driver", "desired", "observed", "status", "remedy"),
    [
        (None, NEW, "", Status.UNKNOWN, Remedy.MEASURE),
        (InstalledDriver(OLD, NEW), NEW, OLD, Status.DIFFERS, Remedy.REBOOT),
        (InstalledDriver(None, NEW), NEW, "", Status.MISSING, Remedy.LOAD),
        (InstalledDriver(NEW, NEW), NEW, NEW, Status.AS_PLANNED, Remedy.NONE),
    ],
)
def test_the_loaded_module_in_full(driver, desired, observed, status, remedy):
    (found,) = [one for one in compare_driver(DKMS, Observed(driver=driver), True) if one.subject == "loaded module"]
    assert found == Comparison("driver", "loaded module", desired, observed, status, remedy, "state")


@pytest.mark.parametrize(
    ("driver", "observed", "status", "remedy"),
    [
        (None, "", Status.UNKNOWN, Remedy.MEASURE),
        (InstalledDriver(None, None), "", Status.MISSING, Remedy.REBOOT),
        (InstalledDriver(NEW, None), NEW, Status.AS_PLANNED, Remedy.NONE),
    ],
)
def test_the_driver_of_somebody_else_in_full(driver, observed, status, remedy):
    found = compare_driver(Driver(version=NEW, branch="535", source="vendor"), Observed(driver=driver), True)
    assert found == [Comparison("driver", "loaded module", "any", observed, status, remedy, "state")]
