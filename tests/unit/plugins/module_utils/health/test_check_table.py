# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of checks is whole, and everything that judges goes by it."""

import re
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import check_table
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_record import ACTION_CLASSES
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_table import (
    BY_CODE,
    CHECKS,
    FAULTS,
    OPTIONS,
    OPTIONS_OVER_TIME,
)
from ansible_collections.allreduce.gpu.plugins.module_utils.health.findings import NOTE, SEVERITIES
from ansible_collections.allreduce.gpu.plugins.module_utils.health.xid_table import CLASSES

TABLES = ("check_table.py", "host_checks.py")
CODE = re.compile(r"[a-z][a-z0-9_]*")
each_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)


def test_codes_are_unique():
    assert len(BY_CODE) == len(CHECKS)
    assert len(FAULTS) == sum(len(check.faults) for check in CHECKS)
    assert len({**OPTIONS, **OPTIONS_OVER_TIME}) == sum(len(check.options) for check in CHECKS)


@each_check
def test_a_record_is_whole(check):
    assert CODE.fullmatch(check.code)
    assert check.category in ("coherence", "health")
    assert check.subject and check.source and check.faults


@each_check
def test_a_fault_has_a_severity_and_an_action(check):
    for fault in check.faults:
        assert CODE.fullmatch(fault.code)
        assert fault.meaning and fault.action
        assert fault.severity in (*SEVERITIES, NOTE)
        assert fault.action_class in ACTION_CLASSES


@each_check
def test_a_threshold_is_a_typed_option(check):
    for option in check.options.values():
        assert option["type"] in ("int", "bool", "list")
        assert (option["type"] == "list") == ("elements" in option)


def test_what_condemns_a_node_says_what_becomes_of_it():
    """Nobody drains a node for good to look at it, or leaves one that needs a reset."""
    assert {fault.action_class for fault in FAULTS.values() if fault.severity == "failed"} == {
        "configure", "reset", "reboot", "isolate",
    }  # fmt: skip


def test_every_fault_of_the_table_is_told_by_some_code():
    """A fault's code stands where it is told, or comes from a table of NVML, of the fabric or of Xids."""
    folder = Path(check_table.__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py") if path.name not in TABLES)
    tables = {*check_table.CODES, *check_table.UNUSABLE, *check_table.TROUBLED, *CLASSES}
    lost = [key for key in FAULTS if f'"{key[1]}"' not in text and key[1] not in tables and key[0] != "other_problems"]
    assert lost == []
