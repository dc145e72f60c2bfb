# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When only a reboot brings a driver into use, and why."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import (
    InstalledDriver,
    Kernel,
    Observed,
    Reboot,
    SecureBoot,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Driver, Gpus, Stack
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.packaged import Desired
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.reboot import reboot_due

NEW, OLD = "580.105.08", "580.95.05"
WITH, WITHOUT = (Gpus(model="A10", count=1),), ()
DRIVER = Driver(version=NEW, branch="580", dkms_module="nvidia")
WANTED, ABSENT = Desired(Stack(gpus=WITH, driver=DRIVER)), Desired(Stack(gpus=WITH), frozenset({"driver"}))
PENDING = SecureBoot(enforced=True, shim=True, certificate="/var/lib/dkms/mok.pub", key="pending")
UNKNOWN = SecureBoot(enforced=True, shim=True, certificate="/var/lib/dkms/mok.pub", key="unknown")


def due(desired=WANTED, loaded=None, installed=NEW, changed=False, **state):
    state = {"kernel": Kernel(running="6.1.0-40"), "packages": {}, **state}
    return reboot_due(desired, Observed(driver=InstalledDriver(loaded, installed), **state), changed)


@pytest.mark.parametrize(
    ("loaded", "installed", "expected"),
    [
        (NEW, NEW, ("", "")),
        (OLD, NEW, ("other", f"driver {OLD} is loaded, {NEW} is installed")),
        (None, NEW, ("not_loadable", f"driver {NEW} cannot be loaded into the running kernel 6.1.0-40")),
        (OLD, None, ("", "")),
        (None, None, ("", "")),
    ],
)
def test_an_installed_driver(loaded, installed, expected):
    assert due(loaded=loaded, installed=installed) == expected


@pytest.mark.parametrize(("loaded", "code"), [(OLD, "other"), (None, "")])
def test_without_a_gpu_nothing_needs_to_be_loaded(loaded, code):
    assert due(Desired(Stack(gpus=WITHOUT, driver=DRIVER)), loaded).code == code


@pytest.mark.parametrize(
    ("loaded", "installed", "reason"),
    [(OLD, None, f"the removed driver {OLD} is still loaded"), (OLD, OLD, ""), (None, None, ""), (None, OLD, "")],
)
def test_a_removed_driver(loaded, installed, reason):
    assert due(ABSENT, loaded, installed).reason == reason


@pytest.mark.parametrize(
    ("boot", "loaded", "code"),
    [(PENDING, None, "key"), (PENDING, OLD, "key"), (PENDING, NEW, ""), (UNKNOWN, None, "not_loadable")],
)
def test_a_key_that_a_person_has_to_confirm(boot, loaded, code):
    found = due(loaded=loaded, secure_boot=boot)
    assert found.code == code and ("Enroll MOK" in found.reason) is (code == "key")


@pytest.mark.parametrize(
    ("changed", "recorded", "code"),
    [
        (True, None, "parameters"),
        (False, None, ""),
        (False, Reboot("a reason", code="parameters"), "parameters"),
        (False, Reboot("parameters of the driver's kernel module have changed"), ""),
        (False, Reboot("another", code="other"), ""),
    ],
)
def test_changed_parameters_stand_until_the_node_has_restarted(changed, recorded, code):
    assert due(loaded=NEW, changed=changed, reboot_pending=recorded).code == code
    assert due(loaded=OLD, changed=changed, reboot_pending=recorded).code == "other"


def test_what_was_not_measured_asks_for_nothing():
    assert reboot_due(WANTED, Observed(measured=False)) == ("", "")
