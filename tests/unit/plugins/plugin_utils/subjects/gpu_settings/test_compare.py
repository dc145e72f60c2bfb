# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU settings that differ from the declaration, now or at the next boot."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects import BY_NAME
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.gpu_settings.compare import SETTINGS, UNIT
from ansible_collections.allreduce.gpu.tests.support.subjects import compared

SUBJECT = BY_NAME["gpu_settings"]
GPU = {
    "index": 0, "uuid": "GPU-0", "name": "NVIDIA H100 80GB HBM3", "pci_bus_id": "0000:18:00.0", "persistence_mode": True,
    "compute_mode": "default", "ecc": {"current": True, "pending": True}, "mig": {"current": False, "pending": False},
    "power_limit_watts": {"current": 700, "default": 700, "min": 200, "max": 700},
}  # fmt: skip
DECLARATION = {
    "persistence_mode": True,
    "ecc": True,
    "mig_mode": "off",
    "compute_mode": "default",
    "power_limit_watts": "default",
    "locked_clocks": {"graphics": 1980},
}


def differences(declaration=None, gpus=(GPU,), enabled=True, **variables):
    facts = {
        "gpu_node": {"gpus": list(gpus)},
        "gpu_node_state": {"services": {UNIT: {"enabled": enabled, "active": False}}},
    }
    found = compared(
        SUBJECT, {"gpu_settings_declaration": DECLARATION if declaration is None else declaration, **variables}, facts
    )
    return {one.subject: (one.observed, one.desired, one.status.value) for one in found if one.differs}


def test_a_node_as_declared_and_one_without_a_declaration():
    found = compared(
        SUBJECT, {"gpu_settings_declaration": DECLARATION}, {"gpu_node": {"gpus": [GPU, {**GPU, "index": 1}]}}
    )
    assert [one.subject for one in found] == [*(f"{name} of GPU {gpu}" for gpu in (0, 1) for name in SETTINGS), UNIT]
    assert differences() == {} and differences([DECLARATION]) == {}
    assert differences([], enabled=False) == differences({}, enabled=None) == {}
    assert differences(DECLARATION, gpus=(), enabled=False) == {}


@pytest.mark.parametrize(
    ("change", "subject", "difference"),
    [
        ({"persistence_mode": False}, "persistence_mode of GPU 0", ("off", "on", "differs")),
        ({"ecc": {"current": True, "pending": False}}, "ecc of GPU 0", ("off", "on", "differs")),
        ({"mig": {"current": False, "pending": True}}, "mig_mode of GPU 0", ("on", "off", "differs")),
        ({"compute_mode": "prohibited"}, "compute_mode of GPU 0", ("prohibited", "default", "differs")),
        (
            {"power_limit_watts": {**GPU["power_limit_watts"], "current": 300}},
            "power_limit_watts of GPU 0",
            ("300", "700", "differs"),
        ),
    ],
)
def test_a_setting_that_somebody_changed(change, subject, difference):
    assert differences(gpus=[{**copy.deepcopy(GPU), **change}]) == {subject: difference}


def test_what_waits_for_a_reset_is_set():
    assert differences(gpus=[{**GPU, "ecc": {"current": False, "pending": True}}]) == {}


def test_what_is_not_applied_at_the_next_boot():
    assert differences(enabled=False) == {UNIT: ("disabled", "enabled", "differs")}
    assert differences(enabled=None) == {UNIT: ("disabled", "enabled", "unknown")}
    for variables in ({"declaration": []}, {"gpu_settings_state": "absent"}):
        assert differences(**variables) == {UNIT: ("enabled", "absent", "unwanted")}


def test_what_a_gpu_refuses_is_not_as_declared():
    found = differences({"power_limit_watts": 900, "ecc": True})
    assert list(found) == ["GPU0"] and "900 is out of range; give 200 to 700" in found["GPU0"][0]
    assert "GPU-9" in differences({"gpus": "GPU-9", "ecc": True})


def test_gpus_that_nvml_does_not_show_are_unknown():
    assert differences(gpus=[{"pci_bus_id": "0000:18:00.0"}])["settings"][2] == "unknown"
