# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_table import BY_CODE, FAULTS
from ansible_collections.allreduce.gpu.plugins.module_utils.health.findings import (
    fault,
    finding,
    judged,
    no_answer,
    number_of,
    verdict,
    without_findings,
)


@pytest.mark.parametrize(
    ("severities", "expected"),
    [
        ([], "ok"),
        (["unknown"], "unknown"),
        (["unknown", "degraded"], "degraded"),
        (["degraded", "reboot_required"], "reboot_required"),
        (["failed", "reboot_required", "degraded"], "failed"),
    ],
)
def test_the_verdict_is_the_worst_that_is_known(severities, expected):
    assert verdict([finding("x", 1, 2, severity, "", "") for severity in severities]) == expected


def test_what_is_well_has_no_findings():
    assert judged("xid", 1, 1, [None])["findings"] == []


def test_what_was_judged_says_of_which_kind_it_is():
    bad = finding("xid", 1, 2, "failed", "", "")
    entry = {"check": "xid", "category": BY_CODE["xid"].category, "expected": 1, "measured": 2}
    assert judged("xid", 1, 2) == {**entry, "findings": [], "notes": []}
    assert judged("xid", 1, 2, [None, bad]) == {**entry, "findings": [bad], "notes": []}


def test_a_note_is_no_finding_and_stands_for_what_was_measured():
    notes = [finding("xid", 1, "Xid 31", "note", "", "", "GPU3"), finding("xid", 1, "Xid 13", "note", "", "")]
    found = judged("xid", 1, "none", notes)
    assert (found["findings"], found["notes"], found["measured"]) == ([], notes, "Xid 31 of GPU3; Xid 13")
    assert without_findings(found) == {
        "check": "xid", "category": BY_CODE["xid"].category, "expected": 1, "measured": "Xid 31 of GPU3; Xid 13",
    }  # fmt: skip


@pytest.mark.parametrize("code", ["reset", "monitor"])
@pytest.mark.parametrize("action", [None, "look at it"])
def test_a_fault_has_the_severity_cause_and_action_of_the_table(code, action):
    row = FAULTS["xid", code]
    assert fault("xid", code, "none", "some", "GPU1", action) == {
        "check": "xid", "gpu": "GPU1", "expected": "none", "measured": "some", "severity": row.severity,
        "cause": row.meaning, "action": action or row.action, "action_class": row.action_class,
    }  # fmt: skip
    assert fault("xid", code, "none", "some")["gpu"] is None


def test_a_finding_needs_no_gpu_and_no_class():
    assert finding("xid", "none", "some", "failed", "because", "act") == {
        "check": "xid", "gpu": None, "expected": "none", "measured": "some", "severity": "failed", "cause": "because", "action": "act",
        "action_class": None,
    }  # fmt: skip


@pytest.mark.parametrize("source", [{}, {"nvml_errors": None}, {"nvml_errors": {"other": "unknown"}}])
def test_what_a_gpu_does_not_have_is_no_finding(source):
    assert no_answer("ecc", "on", "GPU0", source, "nvmlDeviceGetEccMode") is None


def test_a_function_that_failed_is_unknown_with_its_error():
    one = no_answer("ecc", "on", "GPU0", {"nvml_errors": {"function": "no_permission"}}, "function")
    assert one == {
        "check": "ecc", "gpu": "GPU0", "expected": "on", "measured": None, "severity": "unknown",
        "cause": "NVML did not answer (no permission)", "action": "run with become, then check the kernel log",
        "action_class": "monitor",
    }  # fmt: skip


@pytest.mark.parametrize(("count", "text"), [(0, "0 GPUs"), (1, "1 GPU"), (2, "2 GPUs")])
def test_a_number_of_gpus(count, text):
    assert number_of([None] * count) == text
