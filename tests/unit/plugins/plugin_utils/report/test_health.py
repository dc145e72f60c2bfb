# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.gpu_node import GpuNode
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.health import Judgement
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import health
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.machine import Fault
from ansible_collections.allreduce.gpu.tests.report import simulated


def built(name):
    found = simulated.measured(name)
    return health.build(parse(GpuNode, found["gpu_node"]), parse(Judgement, found["gpu_health"]))


def test_equal_gpus_are_one_row():
    (row,) = built("dgx").rows
    assert row[0] == "GPU[0-7]"
    gpu = row[1]
    assert (gpu.verdict, gpu.pcie, gpu.nvlinks) == ("ok", "gen 1 of 4, x16", "12 of 12 active")
    assert (gpu.memory, gpu.clocks) == ("0 uncorrected; 0 rows remapped", "idle")
    assert (gpu.persistence, gpu.modes, gpu.power) == ("on", "ECC on; MIG off", "400 W")


def test_the_worst_gpu_stands_first():
    found = built("broken")
    assert found.verdict == "failed"
    assert [(names, gpu.verdict) for names, gpu in found.rows] == [
        ("GPU6", "failed"),
        ("0000:45:00.0", "failed"),
        ("GPU1", "degraded"),
        ("GPU4", "degraded"),
        ("GPU[0,2,5,7]", "ok"),
    ]


def test_each_finding_says_what_to_do():
    found = {gpu.name: gpu.findings for gpu in built("broken").gpus if gpu.findings}
    assert found["GPU1"] == ("pcie width: x8, expected: x16. Reseat the GPU or its riser.",)
    assert len(found["GPU6"]) == 2


def test_a_gpu_that_does_not_answer_is_not_said_to_be_without_ecc():
    lost = next(gpu for gpu in built("broken").gpus if gpu.name == "0000:45:00.0")
    assert (lost.memory, lost.clocks, lost.persistence) == ("", "", "")
    assert built("workstation").gpus[0].memory == "no ECC"


def test_what_nobody_judged_is_not_ok():
    found = health.build(parse(GpuNode, simulated.measured("a40")["gpu_node"]), None)
    assert found.verdict == "not_judged"
    assert {gpu.verdict for gpu in found.gpus} == {"not_judged"}


def test_findings_of_the_node_are_apart():
    judged = {
        "verdict": "reboot_required",
        "findings": [{"check": "driver_library", "gpu": None, "measured": None, "expected": "535", "action": "reboot"}],
    }
    found = health.build(GpuNode(), parse(Judgement, judged))
    assert (found.verdict, found.gpus) == ("reboot_required", ())
    assert found.findings == ("driver library: not known, expected: 535. Reboot.",)


def test_notes_are_apart_from_findings():
    notes = [
        {"check": "oom_kills", "gpu": None, "measured": "2 killed: python3", "severity": "note", "action": "look"},
        {"check": "xid", "gpu": "GPU1", "measured": "Xid 31", "severity": "note", "action": "restart the job"},
    ]
    found = health.build(GpuNode(), parse(Judgement, {"verdict": "ok", "notes": notes}))
    assert (found.verdict, found.findings) == ("ok", ())
    assert found.notes == ("oom kills: 2 killed: python3. Look.", "xid on GPU1: Xid 31. Restart the job.")


def test_braces_in_the_name_of_a_check_are_text():
    finding = {"check": "other_{thing}", "gpu": "GPU0", "measured": 2, "severity": "failed"}
    assert health.faults(parse(Judgement, {"findings": [finding]})) == {"GPU0": Fault("other_{thing}", "other {thing}")}


@pytest.mark.parametrize(
    ("severities", "expected"),
    [
        (["degraded", "failed"], {"GPU0": Fault("ecc_errors", "2 ECC errors")}),
        (["degraded"], {"GPU0": Fault("other_thing", "other thing")}),
        (["unknown"], {}),
        ([], {}),
    ],
)
def test_the_worst_fault_is_the_one_in_the_picture(severities, expected):
    checks = {"failed": "ecc_errors"}
    findings = [
        {"check": checks.get(severity, "other_thing"), "gpu": "GPU0", "measured": 2, "severity": severity}
        for severity in severities
    ]
    assert health.faults(parse(Judgement, {"findings": findings})) == expected
