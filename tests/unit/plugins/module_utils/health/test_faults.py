# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every fault that the simulated NVML knows is noticed with its verdict; healthy machines give no alarm."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_record import ACTION_CLASSES
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_table import CHECKS
from ansible_collections.allreduce.gpu.tests.lab.nvml.faults import faults, healthy

# What docs/health.md shows, see tools/docs/health.py.
DOCUMENTED = {(check.code, fault.severity, fault.action_class) for check in CHECKS for fault in check.faults}


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_every_fault_is_noticed(examine, fault):
    found = examine(fault.machine, log=fault.log, **{"gpu_count": len(fault.machine.gpus), **fault.limits})
    assert found["verdict"] == fault.verdict, found["findings"]
    assert all(one["action"] for one in found["findings"]), "a finding without an action strands the node"
    assert {one["action_class"] for one in found["findings"]} <= set(ACTION_CLASSES)
    known = [row_of(one) for one in found["findings"] if one["severity"] != "unknown"]
    assert set(known) <= DOCUMENTED, "docs/health.md shows the table, and not what was found"


def row_of(finding):
    return finding["check"], finding["severity"], finding["action_class"]


@pytest.mark.parametrize("fault", healthy(), ids=lambda fault: fault.name)
def test_no_false_alarm(examine, fault):
    found = examine(fault.machine, log=fault.log, **{"gpu_count": len(fault.machine.gpus), **fault.limits})
    assert (found["verdict"], found["findings"]) == ("ok", [])


def test_names_are_unique():
    names = [fault.name for fault in faults() + healthy()]
    assert len(names) == len(set(names))
