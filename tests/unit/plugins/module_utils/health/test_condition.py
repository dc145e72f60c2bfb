# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a GPU says of its own parts, asked by the real pynvml of the simulated library."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.condition import CONDITIONS, REPLAYS, pcie_replays
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.lab.nvml.fault import all_said, said
from ansible_collections.allreduce.gpu.tests.lab.nvml.gpu_faults import UNKNOWN_TO_OLD_DRIVERS

HOT, AT = "more than %d degrees below its limit", "%d degrees below its limit"
CHECKS = {row[0] for row in CONDITIONS}


def told(found):
    return [
        (one["check"], one["gpu"], one["expected"], one["measured"], one["severity"], one["action_class"])
        for one in found["findings"]
    ]


@pytest.mark.parametrize(
    ("setting", "limits", "expected"),
    [
        (("sram", "1 3 2"), {}, ("sram_errors", "below NVIDIA's threshold", "5 uncorrected, above the threshold", "degraded", "isolate")),
        (("row_histogram", "600 30 8 0 2"), {}, ("spare_rows", "at most 0 banks without", 2, "degraded", "monitor")),
        (("row_histogram", "600 30 8 0 2"), {"max_exhausted_banks": 2}, None),
        (("row_histogram", "600 30 8 1 1"), {}, ("spare_rows", "at most 0 banks without", 1, "degraded", "monitor")),
        (("field.6", "9"), {"max_aggregate_errors": 8}, ("aggregate_errors", "at most 8", 9, "degraded", "monitor")),
        (("field.6", "9"), {"max_aggregate_errors": 9}, None),
        (("field.6", "9"), {}, None),
        (("field.161.3", "2"), {}, ("nvlink_errors", "at most 0 replays", "2 replays", "degraded", "monitor")),
        (("field.161.3", "2"), {"max_nvlink_replays": 2}, None),
        (("field.162.17", "1"), {}, ("nvlink_errors", "at most 0 recoveries", "1 recoveries", "degraded", "monitor")),
        (("field.162.17", "1"), {"max_nvlink_recoveries": 1}, None),
        (("field.163", "3"), {"max_nvlink_crc_errors": 53}, ("nvlink_errors", "at most 53 crc errors", "54 crc errors", "degraded", "monitor")),
        (("field.163", "3"), {"max_nvlink_crc_errors": 54}, None),
        (("field.94", "101"), {"max_pcie_replays": 100}, ("pcie_replays", "at most 100 since boot", 101, "degraded", "monitor")),
        (("field.94", "100"), {"max_pcie_replays": 100}, None),
        (("temperature_margin", "0"), {}, ("temperature", HOT % 2, AT % 2, "degraded", "monitor")),
        (("temperature_margin", "1"), {}, None),
        (("temperature_margin", "8"), {"temperature_margin": 10}, ("temperature", HOT % 10, AT % 10, "degraded", "monitor")),
        # Memory without a limit of its own: where the GPU shuts itself down, at T.Limit -8 or in degrees.
        (("field.82", "94"), {}, None),
        (("field.82", "95"), {}, ("temperature", "below 95 degrees", "95 degrees", "degraded", "monitor")),
        (("field.82", "110"), {}, ("temperature", "below 95 degrees", "110 degrees", "degraded", "monitor")),
        (("field.230", "0"), {}, None),
        (("field.230", "2"), {}, ("recovery_action", "none", "reboot the node", "failed", "reboot")),
        (("field.230", "4"), {}, ("recovery_action", "none", "drain and reset the GPU", "failed", "reset")),
        (("field.230", "9"), {}, ("recovery_action", "none", "recovery action 9", "degraded", "monitor")),
        (("inforom_valid", "!14"), {}, ("inforom", "valid", "corrupted", "degraded", "monitor")),
    ],
)  # fmt: skip
def test_hopper(examine, setting, limits, expected):
    found = told(examine(said(machines.hgx_h100(), 3, setting), **limits))
    assert found == ([(expected[0], "GPU3", *expected[1:])] if expected else [])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ((("temperature", "90"),), [("temperature", "2 degrees below its limit")]),
        ((("temperature", "89"),), []),
        ((("field.82", "95"),), [("temperature", "95 degrees")]),
        ((("field.82", "94"),), []),
        ((("field.82", "0"), ("temperature_threshold.2", "0")), []),
        ((("field.52", "4"), ("field.59", "2")), [("nvlink_errors", "4 replays"), ("nvlink_errors", "2 recoveries")]),
    ],
)
def test_ampere(examine, settings, expected):
    found = told(examine(said(machines.dgx_a100(), 3, *settings), skip_checks=["peer_temperature"]))
    assert [(check, measured) for check, dummy, dummy_expected, measured, *dummy_rest in found] == expected


def test_every_condition_is_judged_on_a_gpu_that_has_all(examine):
    found = examine(machines.hgx_h100(), max_aggregate_errors=0)
    assert {entry["check"] for entry in found["judged"]} >= CHECKS


def test_what_no_gpu_has_is_not_judged(examine):
    settings = [(key, f"!{code}") for key, code in UNKNOWN_TO_OLD_DRIVERS]
    found = examine(all_said(machines.hgx_h100(), *settings), max_aggregate_errors=0)
    assert found["findings"] == []
    assert {entry["check"] for entry in found["judged"]} & CHECKS == set()


@pytest.mark.parametrize(
    ("generation", "seconds", "replays", "verdict"),
    [
        (5, 60, 31, "ok"),  # 1.92 in a minute and lane, 16 lanes
        (5, 60, 32, "many"),
        (1, 600, 25, "ok"),  # 0.15
        (1, 600, 26, "many"),
        (9, 60, 62, "ok"),  # a generation that is not known yet has at least as many as the last
        (5, None, 10**9, "ok"),  # since when nobody knows
        (None, 60, 10**9, "ok"),
    ],
)
def test_replays_are_judged_by_the_rate_that_the_link_allows(generation, seconds, replays, verdict):
    gpu = {"pcie": {"max_generation": generation, "max_width": 16}}
    context = {"limits": {"max_pcie_replays": None}, "uptime_seconds": seconds}
    found = pcie_replays("GPU0", {"pcie_replays": replays}, gpu, context)
    assert len(found) == (verdict == "many")


def test_rates_grow_with_the_generation():
    assert list(REPLAYS) == sorted(REPLAYS)


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ((("temperature_threshold.2", "105"), ("temperature_threshold.0", "92")), 105),
        ((("temperature_threshold.0", "92"),), 92),
        ((), 95),
        ((("field.193", "!3"),), None),
        ((("temperature_margin", "!3"),), None),
    ],
)
def test_the_limit_of_memory_is_its_own_or_that_of_the_gpu(examine, settings, limit):
    cool, hot = (
        said(machines.hgx_h100(), 3, *settings, ("field.82", str(degrees)))
        for degrees in ((limit or 200) - 1, limit or 200)
    )
    assert told(examine(cool)) == []
    found = [one[:4] for one in told(examine(hot))]
    assert found == ([("temperature", "GPU3", f"below {limit} degrees", f"{limit} degrees")] if limit else [])
