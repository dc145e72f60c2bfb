# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import health
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.document import summary, verification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.node import collective_checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.plan import verification_plan

METRICS = {
    "world_size": 2,
    "backend": "gloo",
    "checks": [{"name": "all_reduce_sum_float32", "expected": [3, 2], "measured": [3, 2], "passed": True}],
    "bandwidth": [{"bytes": 16 << 20, "busbw_gbytes_per_second": 1.234}],
}
FINDING = {
    "check": "row_remapping", "gpu": "GPU2", "expected": "nothing pending", "measured": "pending",
    "severity": "reboot_required", "action": "reset the GPU",
}  # fmt: skip
JUDGED = {"check": "row_remapping", "category": "health", "expected": "nothing pending", "measured": "nothing pending"}
SUCCEEDED = {"training": {"status": "succeeded", "failure": None, "metrics": METRICS}, "msg": "fine"}
STACK = {
    "driver": None,
    "gpus": [],
    "environments": [
        {"name": "main", "python": "3.11", "accelerator": "cpu", "frameworks": {"pytorch": "2.13.0", "lightning": "2"}}
    ],
}


def hostvars():
    facts = {"gpu_stack": STACK, "gpu_node_state": {"packages": {}}, "gpu_node": {"gpus": []}, "kernel": "6.1"}
    return {
        "gpu-1": {"ansible_facts": dict(facts, default_ipv4={"address": "10.0.0.1"})},
        "gpu-2": {"ansible_facts": {}, "gpu_cluster_address": "10.0.0.2"},
    }


def test_the_document_has_every_host_and_its_checks():
    document = verification(["gpu-1", "gpu-2"], ["gpu-1"], hostvars(), SUCCEEDED, "2026-11-21T15:30:00Z")
    assert document["format"] == 1
    assert {name: node["address"] for name, node in document["nodes"].items()} == {
        "gpu-1": "10.0.0.1",
        "gpu-2": "10.0.0.2",
    }
    assert document["nodes"]["gpu-1"]["facts"]["kernel"] == "6.1"
    assert {check["node"] for check in document["nodes"]["gpu-1"]["checks"]} == {"gpu-1"}
    assert [(check["name"], check["status"]) for check in document["nodes"]["gpu-2"]["checks"]] == [
        ("reachable", "failed")
    ]


def test_the_verdict_names_failed_checks_only():
    document = verification(["gpu-2"], [], hostvars(), SUCCEEDED, "")
    assert summary(document)["verdict"] == "1 of 3 checks failed: reachable on gpu-2."
    document["nodes"] = {}
    assert summary(document)["verdict"] == ""


def test_the_summary_shows_what_did_not_pass():
    lines = summary(verification(["gpu-2"], [], hostvars(), SUCCEEDED, ""))["lines"]
    assert lines[0] == "gpu-2: failed (1 failed)"
    assert lines[1].startswith("  failed: reachable: no; expected: yes.")
    assert lines[2] == "cluster: passed (1 skipped, 1 passed)"


@pytest.mark.parametrize(
    ("verdict", "findings", "line"),
    [
        ("ok", [], "gpu-1: passed, GPUs ok (1 passed)"),
        ("reboot_required", [FINDING], "gpu-1: failed, GPUs reboot required (1 failed)"),
        ("ok", [{**FINDING, "severity": "unknown"}], "gpu-1: incomplete, GPUs ok (1 unknown)"),
    ],
)
def test_one_line_names_the_verdict_of_a_node(verdict, findings, line):
    checks = list(health.checks({}, {}, {"judged": [JUDGED], "findings": findings}))
    node = {"checks": checks, "gpu_health": {"verdict": verdict}}
    assert summary({"nodes": {"gpu-1": node}, "cluster_checks": []})["lines"][0] == line


def test_health_is_in_the_document_of_a_node_where_it_was_judged():
    variables = hostvars()
    result = {"verdict": "degraded", "findings": [FINDING], "judged": [JUDGED], "counters": {}, "changed": False}
    variables["gpu-1"]["__verify_health"] = result
    variables["gpu-2"]["__verify_health"] = {"skipped": True, "changed": False}
    nodes = verification(["gpu-1", "gpu-2"], ["gpu-1", "gpu-2"], variables, SUCCEEDED, "")["nodes"]
    assert nodes["gpu-1"]["gpu_health"] == {key: result[key] for key in ("verdict", "findings", "judged", "counters")}
    assert nodes["gpu-2"]["gpu_health"] is None
    assert [check["status"] for check in nodes["gpu-1"]["checks"] if check["name"] == "row_remapping"] == ["failed"]


def test_each_collective_is_a_check_and_the_bandwidth_is_told():
    checks = collective_checks(SUCCEEDED)
    assert [(c["name"], c["node"], c["status"]) for c in checks] == [
        ("all_reduce_sum_float32", "cluster", "passed"), ("all_reduce_bandwidth", "cluster", "skipped"),
    ]  # fmt: skip
    assert checks[1]["measured"] == "1.23 GB/s at 16 MiB"


def test_a_run_that_failed_is_one_failed_check_with_its_last_line():
    failure = {
        "node": "gpu-2",
        "rank": 1,
        "exit_code": 1,
        "reason": "Rank 1 failed.",
        "tail": ["x", "RuntimeError: refused", ""],
    }
    checks = collective_checks({"training": {"status": "failed", "failure": failure, "metrics": None}})
    assert [(c["status"], c["reason"]) for c in checks] == [
        ("failed", "Rank 1 failed. Last line: RuntimeError: refused")
    ]


def test_a_run_that_never_started_fails_with_the_message():
    assert collective_checks({"msg": "There are not enough forks.\nmore"})[0]["reason"] == "There are not enough forks."


def test_wrong_numbers_fail_although_the_run_failed_with_them():
    wrong = dict(METRICS, checks=[dict(METRICS["checks"][0], passed=False, measured=[1, 1])])
    checks = collective_checks({"training": {"status": "failed", "failure": {}, "metrics": wrong}})
    assert [c["status"] for c in checks][0] == "failed"


def test_collectives_that_were_not_asked_for_are_skipped():
    assert [c["status"] for c in collective_checks({"skipped": True})] == ["skipped"]


def test_the_plan_names_modules_peers_and_the_environment_of_pytorch():
    assert verification_plan(STACK, "gpu-1", ["gpu-1", "gpu-2"], hostvars()) == {
        "gpu_health": False,
        "gpu_count": 0,
        "nvidia_smi": False,
        "environments": {"main": ["torch"]},
        "peers": {"gpu-2": "10.0.0.2"},
        "torch_environment": "main",
    }


@pytest.mark.parametrize(
    ("stack", "facts", "wanted", "count"),
    [
        ({"gpus": [{"model": "A40", "count": 2}, {"model": "A100", "count": 1}]}, {}, True, 3),
        ({}, {"gpu_node": {"gpus": [{}]}}, True, 0),
        ({}, {"gpu_node_state": {"driver": {"installed": "535.1", "loaded": None}}}, False, 0),
        ({}, {"gpu_node_state": {"driver": {"installed": None, "loaded": None}}}, False, 0),
    ],
)
def test_health_is_judged_where_there_is_a_gpu_or_a_driver(stack, facts, wanted, count):
    plan = verification_plan(stack, "gpu-1", [], {"gpu-1": {"ansible_facts": facts}})
    assert (plan["gpu_health"], plan["gpu_count"]) == (wanted, count)
