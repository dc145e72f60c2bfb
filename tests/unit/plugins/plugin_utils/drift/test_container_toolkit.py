# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVIDIA Container Toolkit that is planned, next to what a node has."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host.cdi import PATHS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import InstalledDriver, Observed, Service
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import ContainerToolkit, Package
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.container_toolkit import compare_container_toolkit
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components.container_toolkit import (
    GENERATED,
    REFRESHED,
)

LOADED, OTHER = "580.178.04", "575.57.08"
CURRENT, WAITING = InstalledDriver(LOADED, LOADED), InstalledDriver(None, LOADED)
PACKAGE = Package("nvidia-container-toolkit", "1.17.4-1")
OLD, NEW = (
    ContainerToolkit("1.17.4", (PACKAGE,), cdi=GENERATED),
    ContainerToolkit("1.19.1", cdi=REFRESHED, cdi_refresh=True),
)
UNITS = {"nvidia-cdi-refresh.path": Service(True, True), "nvidia-cdi-refresh.service": Service(True, False)}


def test_the_places_of_specifications_are_those_that_a_node_tells():
    assert (GENERATED, REFRESHED) == PATHS


@pytest.mark.parametrize(
    ("planned", "driver", "cdi", "status", "remedy"),
    [
        (OLD, CURRENT, {GENERATED: LOADED}, Status.AS_PLANNED, Remedy.NONE),
        (OLD, CURRENT, {GENERATED: OTHER}, Status.DIFFERS, Remedy.GENERATE),
        (OLD, CURRENT, {GENERATED: None}, Status.DIFFERS, Remedy.GENERATE),
        (OLD, CURRENT, {REFRESHED: LOADED}, Status.MISSING, Remedy.GENERATE),
        (NEW, CURRENT, {REFRESHED: LOADED}, Status.AS_PLANNED, Remedy.NONE),
        (NEW, CURRENT, {}, Status.MISSING, Remedy.GENERATE),
        (OLD, InstalledDriver(loaded=LOADED, installed=None), {}, Status.MISSING, Remedy.GENERATE),
    ],
)
def test_a_specification_is_for_the_loaded_driver(planned, driver, cdi, status, remedy):
    found = compare_container_toolkit(planned, False, Observed(driver=driver, cdi=cdi, packages={}))
    assert [(one.subject, one.status, one.remedy) for one in found if one.kind == "cdi"] == [
        (planned.cdi, status, remedy)
    ]


@pytest.mark.parametrize("driver", [None, WAITING, InstalledDriver(OTHER, LOADED)])
def test_nothing_is_said_of_a_specification_before_the_driver_is_loaded(driver):
    found = compare_container_toolkit(
        OLD, False, Observed(driver=driver, packages={"nvidia-container-toolkit": "1.17.4-1"})
    )
    assert [(one.kind, one.status) for one in found] == [("package", Status.AS_PLANNED)]


@pytest.mark.parametrize(
    ("services", "differing"),
    [
        (UNITS, []),
        ({**UNITS, "nvidia-cdi-refresh.path": Service(True, False)}, ["nvidia-cdi-refresh.path"]),
        ({**UNITS, "nvidia-cdi-refresh.service": Service(False, False)}, ["nvidia-cdi-refresh.service"]),
    ],
)
def test_the_toolkits_own_service_writes_it(services, differing):
    found = compare_container_toolkit(NEW, False, Observed(services=services))
    assert [one.subject for one in found if one.differs] == differing
    assert compare_container_toolkit(OLD, False, Observed(services={}, packages={}))[0].kind == "package"


@pytest.mark.parametrize(
    ("absent", "removed"), [(False, []), (True, ["libnvidia-container1", "nvidia-container-toolkit-base"])]
)
def test_only_who_wants_it_absent_has_it_removed(absent, removed):
    packages = {
        "nvidia-container-toolkit-base": "1.17.4-1",
        "libnvidia-container1": "1.17.4-1",
        "libnvidia-compute-580": "580",
    }
    found = compare_container_toolkit(None, absent, Observed(packages=packages))
    assert [(one.subject, one.remedy) for one in found] == [(name, Remedy.REMOVE) for name in removed]
