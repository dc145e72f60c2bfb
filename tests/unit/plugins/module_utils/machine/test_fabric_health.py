# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVLink fabric as GPUs see it, through every version of the question that a library may know."""

import pynvml
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import fabric_health
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines

WELL = 0b01_01_0001_10_10_10_10  # all said to be as they should
NAMES = ("DEGRADED_BW", "ROUTE_RECOVERY", "ROUTE_UNHEALTHY", "ACCESS_TIMEOUT_RECOVERY", "INCORRECT_CONFIGURATION",
         "PARTITION_ASSIGNED", "GFM_STATE")  # fmt: skip


def with_fabric(machine, number, **settings):
    """The machine with a GPU of which the fabric says that."""
    said = tuple((f"fabric_{key}", str(value)) for key, value in settings.items())
    return machine.change(number, settings=(*said, *machine.gpus[number].settings))


def told(found):
    return [(one["gpu"], one["severity"]) for one in found["findings"] if one["check"] == "fabric"]


def test_the_mask_is_that_of_the_header():
    assert len(fabric_health.MASK) == len(NAMES)
    for number, name in enumerate(NAMES):
        shift, width, codes = fabric_health.MASK[number]
        assert shift == getattr(pynvml, f"NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_{name}")
        assert width == getattr(pynvml, f"NVML_GPU_FABRIC_HEALTH_MASK_WIDTH_{name}")
        values = {
            value
            for key, value in vars(pynvml).items()
            if key.startswith(f"NVML_GPU_FABRIC_HEALTH_MASK_{name}_") and not key.endswith(("NOT_SUPPORTED", "_NONE"))
        }
        good = {"PARTITION_ASSIGNED": {1}, "GFM_STATE": {1}, "INCORRECT_CONFIGURATION": set()}.get(name, {2})
        assert set(codes) == values - good
    codes = {code for _shift, _width, codes in fabric_health.MASK for code in codes.values()}
    assert codes | {*fabric_health.SUMMARY.values(), "not_registered"} == set(fabric_health.CODES)


@pytest.mark.parametrize("mask", [0, WELL])
def test_a_healthy_mask_has_no_codes(mask):
    assert fabric_health.read_mask(mask) == []


@pytest.mark.parametrize(
    "make", [machines.hgx_h100, machines.hgx_b200, machines.gb200_tray], ids=lambda make: make.__name__
)
@pytest.mark.parametrize(
    ("settings", "severity"),
    [
        ({}, None),
        ({"health": WELL}, None),
        ({"health": WELL, "summary": 1}, None),
        ({"health": 0b01}, "degraded"),
        ({"health": 0b01 << 2}, "degraded"),
        ({"health": 0b01 << 4}, "failed"),
        ({"health": 4 << 8}, "failed"),
        ({"health": 5 << 8}, "failed"),
        ({"health": 2 << 14}, "degraded"),
        ({"summary": 2}, "failed"),
        ({"summary": 3}, "degraded"),
        ({"status": 999}, "failed"),
        ({"version": 2, "health": 0b01 << 4}, "failed"),
    ],
    ids=str,
)  # fmt: skip
def test_what_the_fabric_says_of_a_gpu(examine, make, settings, severity):
    found = examine(with_fabric(make(), 1, **settings))
    assert told(found) == ([("GPU1", severity)] if severity else [])
    assert found["verdict"] == (severity or "ok")


@pytest.mark.parametrize(("version", "health"), [(3, ["route_unhealthy"]), (2, ["route_unhealthy"]), (0, [])])
def test_every_driver_is_asked_what_it_knows(measure, version, health):
    machine = with_fabric(machines.gb200_tray(), 0, version=version, health=1 << 4)
    gpu = measure(machine)["gpus"][0]
    assert gpu["fabric"] == {
        "state": "completed", "rack": True, "domain": "abababab-abab-abab-abab-abababababab.0", "health": health,
    }  # fmt: skip
    assert gpu["nvml_errors"] == {}, "an older driver is not a fault"


def test_gpus_of_one_node_in_several_partitions(examine):
    halves = with_fabric(with_fabric(machines.gb200_tray(), 3, clique=7), 0, clique=7)
    found = examine(halves)
    assert told(found) == [(None, "degraded")]
    assert "abababababab.7" in found["findings"][0]["measured"]


def test_one_gpu_in_another_partition_is_named(examine, measure):
    machine = with_fabric(machines.gb200_tray(), 3, clique=7)
    found = examine(machine)
    assert told(found) == [("GPU3", "degraded")]
    domain = "abababab-abab-abab-abab-abababababab"
    sentence = (
        f"GPU3 is in domain or partition {domain}.7 of the NVLink fabric, most of the node's GPUs are in {domain}.0"
    )
    assert found["findings"][0]["measured"] == sentence
    assert measure(machine)["problems"] == [sentence]


def test_a_status_means_nothing_before_the_registration_is_complete(examine):
    found = examine(machines.hgx_h100().change(0, settings=(("fabric_state", "2"), ("fabric_status", "999"))))
    assert told(found) == [(None, "failed")]
    assert found["findings"][0]["measured"] == "in progress"


def test_a_node_without_a_fabric_is_not_judged(examine):
    assert "fabric" not in [one["check"] for one in examine(machines.a40_pcie())["judged"]]
