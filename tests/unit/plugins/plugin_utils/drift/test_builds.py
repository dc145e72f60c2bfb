# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from itertools import product

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import DkmsBuild, Kernel, Observed
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Driver, Package, Precompiled
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.builds import Builds, missing_builds
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.driver import compare_driver

A, B = "6.1.0-40", "6.1.0-41"
OLD, NEW = "535.261.03", "535.309.01"
DRIVER = Driver(version=NEW, branch="535", dkms_module="nvidia")


def observed(builds, headers=(A, B)):
    kernel = Kernel(running=A, newest=B, installed=(A, B), headers=tuple(headers))
    return Observed(packages={}, kernel=kernel, dkms=tuple(builds))


def build(version, kernel, status="installed"):
    return DkmsBuild("nvidia", version, kernel, "x86_64", status)


EVERY = [
    build(NEW, A),
    build(NEW, B),
    build(OLD, A),
    build(NEW, A, "built"),
    DkmsBuild("other", NEW, A, None, "installed"),
]


@pytest.mark.parametrize("chosen", list(product([False, True], repeat=len(EVERY))))
@pytest.mark.parametrize("headers", [(), (A,), (B,), (A, B)])
def test_what_is_built_is_what_drift_names(chosen, headers):
    """Every state of DKMS: the role builds exactly what verification would complain about."""
    state = observed([one for one, taken in zip(EVERY, chosen, strict=True) if taken], headers)
    missing = missing_builds(DRIVER, state)
    named = [one.subject for one in compare_driver(DRIVER, state, False) if one.kind == "module" and one.differs]
    assert sorted(missing.kernels + missing.without_headers) == sorted(named)
    assert set(missing.kernels) <= set(headers)
    assert missing.possible == bool(headers or not named)


def test_the_newest_version_that_dkms_was_given_is_built():
    state = observed([build(OLD, A), build(OLD, B), DkmsBuild("nvidia", NEW)])
    moving = Driver(branch="535", source="distribution", dkms_module="nvidia")
    assert missing_builds(moving, state) == Builds("nvidia", NEW, (A, B), (), True)


def test_a_version_that_dkms_does_not_know():
    assert missing_builds(DRIVER, observed([build(OLD, A)])).version is None


def test_a_container_has_headers_and_no_kernel():
    kernel = Kernel(running="host", headers=(A, B))
    state = Observed(kernel=kernel, dkms=(DkmsBuild("nvidia", NEW),))
    assert missing_builds(DRIVER, state) == Builds("nvidia", NEW, (B,), (), True)


@pytest.mark.parametrize(
    "driver",
    [
        Driver(version=NEW, branch="535"),
        Driver(version=NEW, dkms_module="nvidia", precompiled=Precompiled((Package("m"),), ())),
    ],
)
def test_a_driver_that_dkms_does_not_build(driver):
    assert missing_builds(driver, observed([])) is None
