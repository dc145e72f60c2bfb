# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import (
    InstalledDriver,
    Kernel,
    KernelModule,
    Observed,
    Reboot,
    Service,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Component, FabricManager, Package
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.services import (
    compare_fabric_manager,
    compare_imex,
    compare_node,
)

NAME = "nvidia-fabricmanager"
ON, OFF, UNKNOWN = Service(True, True), Service(False, False), Service()
LOADED, WAITING = InstalledDriver("1", "1"), InstalledDriver("0", "1")
AS_PLANNED, ASKED = (Status.AS_PLANNED, Remedy.NONE), (Status.UNKNOWN, Remedy.MEASURE)
MISSING, DIFFERS = (Status.MISSING, Remedy.SERVICE), (Status.DIFFERS, Remedy.SERVICE)


def node(subject, **state):
    (found,) = [one for one in compare_node(Observed(**state)) if one.subject == subject]
    return found


def verdict(comparison):
    return comparison.status, comparison.remedy


@pytest.mark.parametrize(
    ("services", "expected", "observed"),
    [
        ({"chrony": ON}, AS_PLANNED, "enabled and active"),
        ({"chronyd": ON}, AS_PLANNED, "enabled and active"),
        ({"chrony": OFF, "chronyd": ON}, AS_PLANNED, "enabled and active"),
        ({"chrony": UNKNOWN, "chronyd": ON}, AS_PLANNED, "enabled and active"),
        ({"chrony": ON, "chronyd": OFF}, AS_PLANNED, "enabled and active"),
        ({"chrony": OFF, "chronyd": OFF}, DIFFERS, "not enabled and not active"),
        ({"chrony": Service(True, False)}, DIFFERS, "enabled and not active"),
        ({"chrony": Service(False, True)}, DIFFERS, "not enabled and active"),
        ({"chrony": UNKNOWN, "chronyd": UNKNOWN}, ASKED, ""),
        ({"chrony": Service(True, None)}, ASKED, ""),
        ({NAME: ON}, ASKED, ""),
        ({}, ASKED, ""),
    ],
)
def test_a_time_service_runs_by_either_name(services, expected, observed):
    found = node("time service", services=services)
    assert (verdict(found), found.observed) == (expected, observed)


@pytest.mark.parametrize(
    ("interrupted", "expected", "observed"),
    [
        (False, AS_PLANNED, "consistent"),
        (True, (Status.DIFFERS, Remedy.REPAIR), "interrupted"),
        (None, ASKED, ""),
    ],
)
def test_an_interrupted_package_manager(interrupted, expected, observed):
    found = node("package manager", package_manager_interrupted=interrupted)
    assert (verdict(found), found.observed) == (expected, observed)


@pytest.mark.parametrize(
    ("pending", "measured", "expected", "observed"),
    [
        (None, True, AS_PLANNED, "none"),
        (Reboot("driver 1 is loaded", True), True, (Status.DIFFERS, Remedy.REBOOT), "driver 1 is loaded"),
        (Reboot(None, True), True, (Status.DIFFERS, Remedy.REBOOT), "yes"),
        (Reboot("linux-base", False), True, AS_PLANNED, "linux-base"),
        (None, False, ASKED, "none"),
    ],
)
def test_only_a_reboot_that_a_role_recorded_is_a_difference(pending, measured, expected, observed):
    found = node("reboot", reboot_pending=pending, measured=measured)
    assert (verdict(found), found.observed) == (expected, observed)


@pytest.mark.parametrize(
    ("service", "driver", "expected"),
    [
        (ON, LOADED, AS_PLANNED),
        (Service(True, False), LOADED, DIFFERS),
        (Service(False, True), LOADED, DIFFERS),
        (OFF, LOADED, DIFFERS),
        (UNKNOWN, LOADED, ASKED),
        (None, LOADED, ASKED),
        # It starts with no other driver than its own version: until a reboot it is only enabled.
        (Service(True, False), WAITING, AS_PLANNED),
        (Service(True, False), InstalledDriver(None, "1"), AS_PLANNED),
        (Service(True, False), InstalledDriver(None, None), AS_PLANNED),
        (Service(True, False), None, AS_PLANNED),
        (Service(False, True), WAITING, DIFFERS),
        (Service(True, None), WAITING, ASKED),
    ],
)
def test_a_planned_fabric_manager_runs_once_its_driver_is_loaded(service, driver, expected):
    services = {NAME: service} if service else {}
    (found,) = compare_fabric_manager(FabricManager(), Observed(packages={}, services=services, driver=driver))
    assert (found.subject, found.kind, verdict(found)) == (NAME, "service", expected)
    assert found.desired == ("enabled and active" if driver is LOADED else "enabled")


@pytest.mark.parametrize(
    ("service", "state"),
    [
        (ON, "enabled and active"),
        (Service(True, False), "enabled and not active"),
        (Service(False, True), "not enabled and active"),
        (Service(None, True), "not enabled and active"),
        (OFF, None),
        (UNKNOWN, None),
    ],
)
def test_without_a_plan_the_fabric_manager_must_not_run(service, state):
    found = compare_fabric_manager(None, Observed(services={NAME: service}))
    expected = [(NAME, "disabled and stopped", state, Status.UNWANTED, Remedy.SERVICE)] if state else []
    assert [(one.subject, one.desired, one.observed, one.status, one.remedy) for one in found] == expected
    assert compare_fabric_manager(None, Observed()) == []


def test_a_fabric_manager_of_another_version_goes():
    planned = FabricManager(packages=(Package("nvidia-fabricmanager-580", "580.1-1"),))
    present = {"nvidia-fabricmanager-535": "535.1-1", "nvidia-fabricmanager-580": "580.1-1",
               "nvidia-fabricmanager-dev-535": "535.1-1"}  # fmt: skip
    left = {"nvidia-fabric-manager": "535.1-1"}
    found = compare_fabric_manager(planned, Observed(packages=present, leftover_packages=left, services={NAME: ON}))
    gone = [one.subject for one in found if one.remedy is Remedy.REMOVE]
    assert gone == ["nvidia-fabric-manager", "nvidia-fabricmanager-535"]
    assert [one.subject for one in found if one.differs] == gone


@pytest.mark.parametrize(
    ("partial", "next_boot", "expected"),
    [
        ((), None, AS_PLANNED),
        (("a",), None, AS_PLANNED),
        (("a",), "a", (Status.DIFFERS, Remedy.KERNEL)),
        (("b",), None, (Status.DIFFERS, Remedy.KERNEL)),
        (("b",), "a", AS_PLANNED),
    ],
)
def test_the_kernel_of_the_next_boot_is_whole(partial, next_boot, expected):
    kernel = Kernel(running="a", installed=("a", "b"), newest="b", next_boot=next_boot, partial=partial)
    found = node("kernel", kernel=kernel, package_manager="dnf")
    assert verdict(found) == expected


@pytest.mark.parametrize(
    "state",
    [
        {"package_manager": "apt", "kernel": Kernel(installed=("a",), newest="a")},
        {"package_manager": "dnf", "kernel": Kernel(running="host")},
    ],
)
def test_one_package_is_a_whole_kernel_and_a_container_has_none(state):
    assert "kernel" not in [one.subject for one in compare_node(Observed(**state))]


@pytest.mark.parametrize(
    ("services", "compared"),
    [({}, False), ({"chrony": UNKNOWN}, False), ({"chrony": ON}, True), ({"chrony": OFF}, True)],
)
def test_a_container_without_an_init_has_its_hosts_clock(services, compared):
    found = compare_node(Observed(container=True, services=services))
    assert ("time service" in [one.subject for one in found]) == compared


@pytest.mark.parametrize(
    ("modules", "expected", "observed"),
    [
        ({"ib_umad": KernelModule(True, True)}, AS_PLANNED, "loaded, at boot"),
        ({"ib_umad": KernelModule(True, False)}, DIFFERS, "loaded, not at boot"),
        ({"ib_umad": KernelModule(False, True)}, DIFFERS, "not loaded, at boot"),
        ({}, DIFFERS, "not loaded, not at boot"),
        (None, ASKED, ""),
    ],
)
def test_nvlink_5_is_managed_through_a_kernel_module(modules, expected, observed):
    planned = FabricManager(version="1", kernel_modules=("ib_umad",))
    found = compare_fabric_manager(planned, Observed(services={NAME: ON}, driver=LOADED, kernel_modules=modules))[-1]
    assert (found.subject, verdict(found), found.observed) == ("ib_umad", expected, observed)


def test_no_kernel_module_is_asked_for_where_none_is_planned():
    found = compare_fabric_manager(FabricManager(version="1"), Observed(services={NAME: ON}, driver=LOADED))
    assert [one.subject for one in found] == [NAME]


@pytest.mark.parametrize(
    ("planned", "service", "driver", "expected"),
    [
        (True, ON, LOADED, AS_PLANNED),
        (True, Service(True, False), LOADED, DIFFERS),
        (True, Service(True, False), WAITING, AS_PLANNED),
        (True, OFF, WAITING, DIFFERS),
        (True, UNKNOWN, LOADED, ASKED),
        (False, ON, LOADED, (Status.UNWANTED, Remedy.SERVICE)),
        (False, Service(False, True), LOADED, (Status.UNWANTED, Remedy.SERVICE)),
        (False, OFF, LOADED, None),
        (False, UNKNOWN, None, None),
    ],
)
def test_imex_runs_where_it_is_planned_and_nowhere_else(planned, service, driver, expected):
    observed = Observed(services={"nvidia-imex": service}, driver=driver)
    found = compare_imex(Component(version="1") if planned else None, observed)
    assert [(one.component, verdict(one)) for one in found] == ([("imex", expected)] if expected else [])


def test_imex_of_another_branch_is_unwanted():
    planned = Component("580.1", (Package("nvidia-imex", "580.1-*"),))
    observed = Observed(packages={"nvidia-imex": "580.1-1", "nvidia-imex-570": "570.1-1", "nvidia-imexoid": "1"})
    found = {one.subject: one.status for one in compare_imex(planned, observed)}
    assert found["nvidia-imex-570"] is Status.UNWANTED
    assert "nvidia-imexoid" not in found


WHOLE = "9 with its modules"


def test_the_comparisons_of_every_node_in_full():
    kernel = Kernel(running="9", installed=("9",), newest="9")
    state = {
        "package_manager": "dnf",
        "package_manager_interrupted": False,
        "services": {"chrony": ON},
        "kernel": kernel,
    }
    ok = (Status.AS_PLANNED, Remedy.NONE)
    assert compare_node(Observed(**state)) == [
        Comparison("node", "package manager", "consistent", "consistent", *ok, "state"),
        Comparison("node", "time service", "enabled and active", "enabled and active", *ok, "service"),
        Comparison("node", "reboot", "none", "none", *ok, "state"),
        Comparison("node", "kernel", WHOLE, WHOLE, *ok, "state"),
    ]


def test_a_kernel_without_its_modules_in_full():
    kernel = Kernel(running="9", installed=("9",), newest="9", partial=("9",))
    found = compare_node(Observed(package_manager="dnf", kernel=kernel))[-1]
    words = "9 without its modules"
    assert found == Comparison("node", "kernel", WHOLE, words, Status.DIFFERS, Remedy.KERNEL, "state")


@pytest.mark.parametrize(
    ("modules", "observed", "status", "remedy"),
    [
        (None, "", Status.UNKNOWN, Remedy.MEASURE),
        ({}, "not loaded, not at boot", Status.DIFFERS, Remedy.SERVICE),
        ({"ib_umad": KernelModule(loaded=True, at_boot=False)}, "loaded, not at boot", Status.DIFFERS, Remedy.SERVICE),
        ({"ib_umad": KernelModule(loaded=True, at_boot=True)}, "loaded, at boot", Status.AS_PLANNED, Remedy.NONE),
    ],
)
def test_a_kernel_module_in_full(modules, observed, status, remedy):
    plan = FabricManager(version="1", kernel_modules=("ib_umad",))
    found = compare_fabric_manager(plan, Observed(kernel_modules=modules))[-1]
    assert found == Comparison("fabric_manager", "ib_umad", "loaded, at boot", observed, status, remedy, "state")


def test_an_unwanted_service_in_full():
    found = compare_fabric_manager(None, Observed(services={NAME: ON}))
    desired, observed = "disabled and stopped", "enabled and active"
    assert found == [
        Comparison("fabric_manager", NAME, desired, observed, Status.UNWANTED, Remedy.SERVICE, "service"),
    ]
