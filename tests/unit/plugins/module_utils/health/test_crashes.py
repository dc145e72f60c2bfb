# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A check that crashes is unknown; the others are judged all the same."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import crashes, reading, verdict
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_table import BY_CODE, CODES_AT_ONCE
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.lab.nvml.fault import said
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.health_helper import LIMITS, answer, node

# Values that no reader gives, so that judging them fails.
BROKEN = (
    ({"pcie": None}, {}, {"pcie_width", "pcie_generation"}),
    ({"nvlinks": None}, {}, {"nvlinks"}),
    ({"ecc": None}, {}, {"ecc_errors", "row_remapping", "page_retirement"}),
    ({}, {"spare_rows": 7}, {"spare_rows"}),
    ({}, {"sram": 7}, {"sram_errors"}),
    ({}, {"clock_reasons": 7}, {"throttling", "persistence_mode", "pcie_generation", "peer_temperature"}),
)


def told(found):
    return {(one["check"], one["severity"]) for one in found["findings"]}


@pytest.mark.parametrize(("gpu", "counters", "checks"), BROKEN)
def test_a_check_that_crashes_is_unknown_and_no_other_is(gpu, counters, checks):
    found = answer(node(gpu), counters=counters)
    assert found["verdict"] == "unknown"
    crashed = {check for check, severity in told(found) if severity == "unknown"}
    assert crashed and crashed <= checks
    assert {entry["check"] for entry in found["judged"]} >= {"module_loaded", "nvml", "xid", "pending_modes"}
    assert all("crashed" in one["cause"] for one in found["findings"])


def test_a_crash_hides_no_fault(examine):
    machine = said(machines.hgx_h100(), 1, ("sram", "1 1 0"), ("ecc_errors.1.0", "2"))
    broken = examine(machine)
    assert broken["verdict"] == "failed"


def test_a_check_that_crashes_can_be_left_out():
    found = answer(node({"nvlinks": None}), skip_checks=["nvlinks"])
    assert (found["verdict"], found["skipped_checks"]) == ("ok", ["nvlinks"])


@pytest.mark.parametrize("reader", sorted(crashes.READERS))
def test_a_reader_that_crashes_leaves_its_checks_unknown(examine, monkeypatch, reader):
    def crash(*dummy):
        raise TypeError(reader)

    crash.__name__ = reader
    monkeypatch.setattr(reading, reader, crash)
    found = examine(machines.hgx_h100())
    assert found["verdict"] == "unknown"
    assert {check for check, dummy in told(found)} >= set(crashes.READERS[reader])
    assert {severity for dummy, severity in told(found)} == {"unknown"}


def test_every_reader_and_its_checks_exist():
    assert all(callable(getattr(reading, reader)) for reader in crashes.READERS)
    named = [*crashes.READERS.values(), *crashes.HOST_READERS.values()]
    assert {check for checks in named for check in checks} <= set(BY_CODE)


def test_every_check_belongs_to_one_step():
    steps = verdict.steps(node(), [], {"counters": {}, "log": ""}, LIMITS)
    checks = [check for step in steps for check in step[0]]
    checks += [*verdict.COHERENCE, "gpu_count", "gpu_answers", "other_problems"]
    assert sorted(checks) == sorted(code for code in CODES_AT_ONCE if not BY_CODE[code].across)
