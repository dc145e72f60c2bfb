# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables and facts in; the file, sentences and comparisons out."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.drift import checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.nccl.answer import SUBJECT

from tests.support.subjects import compared, decided

PRESENT = {"nccl_conf_state": "present", "nccl_conf_variables": {"NCCL_IB_TC": 106}}
FACT = {
    "recorded": True,
    "exists": True,
    "original": False,
    "variables": {"NCCL_IB_TC": "106"},
    "foreign": [],
    "interfaces": [],
}
ELSEWHERE = [{"file": "/etc/profile.d/x.sh", "line": 2, "name": "NCCL_P2P_DISABLE"}]


def verdicts(fact, **more):
    found = compared(SUBJECT, {**PRESENT, **more}, {"gpu_nccl": fact})
    return [(one.kind, one.subject, one.status, one.remedy) for one in found]


def test_the_answer_is_plain():
    found = decided(
        SUBJECT,
        PRESENT,
        {"gpu_nccl": {**FACT, "recorded": False, "variables": {"NCCL_ALGO ": " Ring"}, "original": True}},
    )
    assert found["plan"]["files"][0]["content"].endswith("# Declared in the inventory.\nNCCL_IB_TC=106\n")
    assert found["problems"] == []
    assert found["notes"][0].startswith(
        "/etc/nccl.conf of gpu-1 has NCCL_ALGO, for which no measurement gives a reason."
    )
    assert decided(SUBJECT, PRESENT, {"gpu_nccl": FACT})["notes"] == []


def test_the_cluster_address_is_the_declared_one():
    interfaces = [{"name": "eth0", "subnet": "10.0.0.0/24"}, {"name": "eth1", "subnet": "10.1.0.0/24"}]
    gpu_node = {"gpus": [{"index": 0}], "nics": [], "topology": {}}
    facts = {
        "gpu_nccl": {**FACT, "interfaces": interfaces},
        "gpu_node": gpu_node,
        "default_ipv4": {"address": "10.0.0.5"},
    }
    assert "NCCL_SOCKET_IFNAME==eth0\n" in decided(SUBJECT, PRESENT, facts)["plan"]["files"][0]["content"]
    declared = {**PRESENT, "gpu_cluster_address": "10.1.0.5"}
    assert "NCCL_SOCKET_IFNAME==eth1\n" in decided(SUBJECT, declared, facts)["plan"]["files"][0]["content"]


def test_why_not_is_told_in_sentences():
    (one,) = decided(SUBJECT, {**PRESENT, "nccl_conf_variables": {"NCCL_PORT_RANGE": "1-2"}}, {"gpu_nccl": FACT})[
        "problems"
    ]
    assert one.startswith("nccl_conf_variables has NCCL_PORT_RANGE, which is refused (there is no such variable")


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (FACT, [("conf", "NCCL_IB_TC", Status.AS_PLANNED), ("foreign", "NCCL's variables", Status.AS_PLANNED)]),
        (
            {**FACT, "variables": {"NCCL_IB_TC": "0", "NCCL_ALGO": "Ring"}},
            [
                ("conf", "NCCL_IB_TC", Status.DIFFERS),
                ("conf", "NCCL_ALGO", Status.UNWANTED),
                ("foreign", "NCCL's variables", Status.AS_PLANNED),
            ],
        ),
        (
            {**FACT, "exists": False, "variables": {}, "foreign": ELSEWHERE},
            [("conf", "NCCL_IB_TC", Status.MISSING), ("foreign", "NCCL_P2P_DISABLE", Status.UNWANTED)],
        ),
    ],
)
def test_comparisons(fact, expected):
    assert [one[:3] for one in verdicts(fact)] == expected


def test_what_may_be_set_elsewhere_is_no_difference():
    fact = {**FACT, "foreign": ELSEWHERE}
    assert verdicts(fact)[-1][2:] == (Status.UNWANTED, Remedy.FOREIGN)
    assert verdicts(fact, nccl_conf_elsewhere=["NCCL_P2P_DISABLE"])[-1][2:] == (
        Status.AS_PLANNED,
        Remedy.NONE,
    )


def test_a_check_names_file_and_line():
    found = {
        one["name"]: one for one in checks(compared(SUBJECT, PRESENT, {"gpu_nccl": {**FACT, "foreign": ELSEWHERE}}))
    }
    assert found["nccl_conf"]["status"] == "passed"
    assert (found["nccl_foreign"]["status"], found["nccl_foreign"]["measured"]) == (
        "failed",
        "line 2 of /etc/profile.d/x.sh",
    )
    assert found["nccl_foreign"]["reason"] == (
        "NCCL_P2P_DISABLE (line 2 of /etc/profile.d/x.sh) is in the way of the plan"
    )
    assert found["nccl_foreign"]["fix"] == "remove that line, or name the variable in nccl_conf_elsewhere"


@pytest.mark.parametrize(
    ("variables", "facts", "statuses"),
    [
        ({}, {}, []),
        ({}, {"gpu_nccl": FACT}, []),
        ({}, {"gpu_node_state": {"records": ["nccl_conf"]}}, [Status.UNWANTED]),
        (PRESENT, {}, [Status.UNKNOWN]),
    ],
)
def test_off_unmeasured_and_left_over(variables, facts, statuses):
    assert [one.status for one in compared(SUBJECT, variables, facts)] == statuses


def test_facts_of_the_wrong_shape_are_refused():
    with pytest.raises(DocumentError, match="gpu_nccl"):
        decided(SUBJECT, PRESENT, {"gpu_nccl": {"foreign": 1}})


def test_an_index_of_the_gid_that_somebody_sets_is_reported():
    line = {"file": "/etc/profile.d/roce.sh", "line": 3, "name": "NCCL_IB_GID_INDEX"}
    found = compared(SUBJECT, PRESENT, {"gpu_nccl": {**FACT, "foreign": [line]}})
    assert ("NCCL_IB_GID_INDEX", Status.UNWANTED, "line 3 of /etc/profile.d/roce.sh") in [
        (one.subject, one.status, one.observed) for one in found
    ]
