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


@pytest.mark.parametrize(
    ("variables", "user"), [({}, "root"), ({"cluster_ssh_user": ""}, "root"), ({"cluster_ssh_user": "mpi"}, "mpi")]
)
def test_whose_login_is_measured(variables, user):
    """The one who trains; role cluster_ssh names them."""
    found = questions({**variables, "tuning_irq_interfaces": ["ens1"]})
    assert (found["user"], found["interfaces"]) == (user, ["ens1"])


def test_no_key_is_asked_for_twice():
    keys = questions({"tuning_sysctl": {"vm.swappiness": 1, "kernel.pid_max": 9}})["sysctl"]
    assert keys == sorted(set(keys)) and "kernel.pid_max" in keys
    # Switches and limits are no keys of the kernel's.
    assert all("." in key for key in keys)


@pytest.mark.parametrize(
    ("changed", "variables", "note"),
    [
        ({"limits": {"ceiling": {"nproc": 2048}}, "switches": {"governor": {"running": "x", "original": "x"}}},
         {"tuning_limits": {"nproc": "unlimited"}, "tuning_idle_latency": 0}, "nproc 2048 (no process can have more here)"),
        ({"container": True}, {"tuning_idle_latency": 0},
         "vm.swappiness (the kernel belongs to the container's host)"),
        ({}, {}, "idle_latency (this kernel or machine does not have it)"),
    ],
)  # fmt: skip
def test_the_user_is_told_what_a_node_keeps(changed, variables, note):
    (found,) = decided(SUBJECT, {**PRESENT, **variables}, {"gpu_tuning": {**FACT, **changed}})["notes"]
    assert (
        found.startswith("gpu-1 keeps ")
        and found.endswith(").")
        and note in found.removeprefix("gpu-1 keeps ")[:-1].split(", ")
    )


def test_what_is_as_it_should_be_needs_no_note():
    fact = {
        "sysctl": {key: {"running": "10", "original": "10"} for key in questions({})["sysctl"]},
        "switches": {"governor": {"running": "performance", "original": "x"}, "idle_latency": {"running": "99", "original": "0"}},
        "logind": {"running": "no"},
    }  # fmt: skip
    assert decided(SUBJECT, PRESENT, {"gpu_tuning": fact})["notes"] == []


def test_the_unit_comes_with_what_it_applies():
    boot = [{"path": "/etc/systemd/system/x.service", "content": "[Unit]\n"}]
    fact = {**FACT, "switches": {"governor": {"running": "x", "original": "x"}}}
    with_switch = decided(SUBJECT, PRESENT, {"gpu_tuning": fact}, boot=boot)["plan"]
    without = decided(SUBJECT, PRESENT, {"gpu_tuning": FACT}, boot=boot)["plan"]
    assert with_switch["files"][-1] == boot[0] and "boot" not in with_switch
    assert boot[0] not in without["files"] and "boot" not in without


def test_the_size_of_the_cluster_and_its_adapters_count():
    sysctl = {"net.ipv4.neigh.default.gc_thresh1": {"running": "128", "original": "128"}}
    facts = {"gpu_tuning": {**FACT, "sysctl": sysctl}}
    large = decided(SUBJECT, PRESENT, facts, groups={"gpu_nodes": [f"gpu-{n}" for n in range(600)]})["plan"]
    assert [one["value"] for one in large["values"]] == ["4096"]
    assert decided(SUBJECT, PRESENT, facts, groups={"gpu_nodes": ["gpu-1"]})["plan"]["values"] == []
    port = {"state": "ACTIVE", "link_layer": "InfiniBand", "rate_gbps": 400.0}
    nic = {"gpu_node": {"nics": [{"name": "mlx5_0", "numa_node": 0, "ports": [port]}]}}
    assert "memlock" in "".join(one["content"] for one in decided(SUBJECT, PRESENT, {**facts, **nic})["plan"]["files"])


def test_the_facts_of_the_hardware_are_judged_too():
    with pytest.raises(DocumentError, match=r"^gpu_node\."):
        decided(SUBJECT, PRESENT, {"gpu_tuning": FACT, "gpu_node": {"gpus": "two"}})


def test_the_same_values_are_refused_before_a_node_is_asked():
    assert [one.code for one in SUBJECT.problems({"tuning_limits": {"stack": 1}})] == ["tuning_unknown_limit"]


def test_interfaces_and_services_that_are_asked_for_are_compared():
    fact = {
        **FACT, "sysctl": {}, "interfaces": {"ens1": {"node": 0, "cpus": "0-3", "irqs": {"7": "1"}}},
        "limits": {"ceiling": {}, "services": {"slurmd": {"nofile": {"soft": 1024, "hard": 4096, "pid": 1}}}, "fresh": None},
    }  # fmt: skip
    variables = {**PRESENT, "tuning_irq_interfaces": ["ens1"], "tuning_limits": {"nofile": 4096}}
    found = compared(SUBJECT, variables, {"gpu_tuning": fact})
    assert [(one.subject, one.status) for one in found] == [
        ("ens1", Status.AS_PLANNED), ("nofile of slurmd", Status.AS_PLANNED),
    ]  # fmt: skip
    found = compared(SUBJECT, {**variables, "tuning_limit_services": ["slurmd"]}, {"gpu_tuning": fact})
    assert [one.status for one in found] == [Status.AS_PLANNED, Status.DIFFERS]


def test_the_comparisons_are_those_of_the_decision():
    (one,) = compared(SUBJECT, PRESENT, {"gpu_tuning": FACT})
    assert (one.subject, one.desired, one.observed) == ("vm.swappiness", "10", "60")


def test_what_is_refused_is_not_as_planned():
    (*_others, last) = compared(
        SUBJECT, {**PRESENT, "tuning_limits": {"stack": 1}}, {"gpu_tuning": {**FACT, "sysctl": {}}}
    )
    assert last.observed == "refused: tuning_limits has stack; choose from memlock, nofile, nproc"

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
    found = decided(SUBJECT, variables, {"gpu_tuning": FACT})
    problems = found["problems"]
    assert (
        found["plan"] is None
        and len(problems) == 3
        and problems[0].startswith("tuning_kernel_arguments has pci=noacs, which is refused")
    )


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
