# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every fault that the simulated NVML knows is noticed with its verdict; healthy machines give no alarm."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import findings
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_record import ACTION_CLASSES
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_table import BY_CODE, CHECKS, FAULTS
from ansible_collections.allreduce.gpu.tests.lab.nvml.faults import faults, healthy

# What docs/health.md shows, see tools/docs/health.py.
DOCUMENTED = {(check.code, fault.severity, fault.action_class) for check in CHECKS for fault in check.faults}
# What no simulated machine has, and which test has it.
ELSEWHERE = {
    "nvml": "test_coherence.py, test_health_program.py: no binding, no answer, and a driver that hangs",
    "other_problems": "test_verdict.py: problems of gpu_node, such as ACS between peers",
}


class Rows(dict):
    """The table of faults; remembers which were told."""

    def __init__(self):
        super().__init__(FAULTS)
        self.told = set()

    def __getitem__(self, key):
        self.told.add(key)
        return super().__getitem__(key)


@pytest.fixture(scope="module")
def decided():
    """{fault's name: (check, code) of what alone decided its verdict}"""
    return {}


@pytest.fixture
def notice(examine, monkeypatch, decided):
    """A function that examines a machine with a fault."""

    def noticed(fault):
        rows = Rows()
        monkeypatch.setattr(findings, "FAULTS", rows)
        found = examine(fault.machine, log=fault.log, **{"gpu_count": len(fault.machine.gpus), **fault.limits})
        # What is skipped is told, too, and decides nothing.
        worst = {
            key
            for key in rows.told
            if FAULTS[key].severity == found["verdict"] and key[0] not in found["skipped_checks"]
        }
        decided[fault.name] = worst.pop() if len(worst) == 1 else None
        return found

    return noticed


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_every_fault_is_noticed(notice, fault):
    found = notice(fault)
    assert found["verdict"] == fault.verdict, found["findings"]
    assert all(one["action"] for one in found["findings"]), "a finding without an action strands the node"
    assert {one["action_class"] for one in found["findings"]} <= set(ACTION_CLASSES)
    known = [row_of(one) for one in found["findings"] if one["severity"] != "unknown"]
    assert set(known) <= DOCUMENTED, "docs/health.md shows the table, and not what was found"


def row_of(finding):
    return finding["check"], finding["severity"], finding["action_class"]


def test_every_fault_of_the_table_alone_decides_a_verdict(notice, decided):
    """Else nobody would miss the check: another one gave the same verdict, or none was tried."""
    for fault in faults():
        if fault.name not in decided:  # where the tests above ran in other processes, or not at all
            notice(fault)
    wanted = {key for key, row in FAULTS.items() if row.severity != findings.NOTE}
    wanted = {key for key in wanted if not (BY_CODE[key[0]].over_time or BY_CODE[key[0]].across or key[0] in ELSEWHERE)}
    assert wanted - set(decided.values()) == set()


@pytest.mark.parametrize("fault", healthy(), ids=lambda fault: fault.name)
def test_no_false_alarm(examine, fault):
    found = examine(fault.machine, log=fault.log, **{"gpu_count": len(fault.machine.gpus), **fault.limits})
    assert (found["verdict"], found["findings"]) == ("ok", [])


def test_names_are_unique():
    names = [fault.name for fault in faults() + healthy()]
    assert len(names) == len(set(names))
