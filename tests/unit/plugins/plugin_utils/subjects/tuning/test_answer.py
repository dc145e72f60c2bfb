# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables and facts in, what the role and the verification need out."""

from __future__ import annotations

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.answer import SUBJECT, questions

from tests.support.subjects import compared, decided

FACT = {
    "sysctl": {"vm.swappiness": {"running": "60", "original": "60"}},
    "sysctl_lines": [],
    "switches": {},
    "tuned": {"in_charge": False},
    "arguments": {"tool": None, "running": [], "configured": None},
    "limits": {"ceiling": {}, "services": {}, "fresh": None},
    "numa_nodes": 1,
}
PRESENT = {"tuning_state": "present"}


def test_what_has_to_be_known():
    asked = questions({"tuning_sysctl": {"vm/max_map_count": 1}, "tuning_limit_services": ["slurmd.service"]})
    assert {"vm.swappiness", "vm.max_map_count", "net.ipv4.tcp_rmem"} < set(asked["sysctl"])
    assert (asked["services"], asked["interfaces"]) == (["slurmd"], [])


def test_the_answer_is_plain():
    found = json.loads(json.dumps(decided(SUBJECT, PRESENT, {"gpu_tuning": FACT})))
    assert found["problems"] == []
    assert "governor (this kernel or machine does not have it)" in found["notes"][0]
    assert found["plan"]["values"] == [{"path": "/proc/sys/vm/swappiness", "value": "10"}]


def test_a_limit_that_ends_before_is_told():
    fact = {**FACT, "limits": {"ceiling": {"nproc": 2048}, "services": {}, "fresh": None}}
    found = decided(SUBJECT, {**PRESENT, "tuning_limits": {"nproc": "unlimited"}}, {"gpu_tuning": fact})
    assert "nproc 2048 (no process can have more here)" in found["notes"][0]


def test_why_not_is_told_in_sentences():
    variables = {**PRESENT, "tuning_kernel_arguments": ["pci=noacs", "iommu=pt"]}
    problems = decided(SUBJECT, variables, {"gpu_tuning": FACT})["problems"]
    assert len(problems) == 3 and problems[0].startswith("tuning_kernel_arguments has pci=noacs, which is refused")


@pytest.mark.parametrize(
    ("variables", "facts", "statuses"),
    [
        ({}, {}, []),
        ({}, {"gpu_node_state": {"records": ["tuning"]}}, [Status.UNWANTED]),
        (PRESENT, {}, [Status.UNKNOWN]),
        (PRESENT, {"gpu_tuning": FACT}, [Status.DIFFERS]),
    ],
)
def test_comparisons(variables, facts, statuses):
    assert [one.status for one in compared(SUBJECT, variables, facts)] == statuses


def test_a_fact_of_the_wrong_shape_is_refused():
    with pytest.raises(DocumentError, match="gpu_tuning.numa_nodes"):
        decided(SUBJECT, PRESENT, {"gpu_tuning": {**FACT, "numa_nodes": "two"}})
