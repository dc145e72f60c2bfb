# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import health
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.document import (
    inventory_name,
    read_of_others,
    summary,
    verdict,
    verification,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.node import SEE, collective_checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.plan import verification_cluster, verification_plan
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.verification import Verification

METRICS = {
    "world_size": 2,
    "backend": "gloo",
    "checks": [{"name": "all_reduce_sum_float32", "expected": [3, 2], "measured": [3, 2], "passed": True}],
    "bandwidth": [{"bytes": 16 << 20, "busbw_gbytes_per_second": 1.234}],
}
FINDING = {
    "check": "row_remapping", "gpu": "GPU2", "expected": "nothing pending", "measured": "pending",
    "severity": "reboot_required", "cause": "a row is remapped at the next reset", "action": "reset the GPU",
}  # fmt: skip
JUDGED = {"check": "row_remapping", "category": "health", "expected": "nothing pending", "measured": "nothing pending"}
SUCCEEDED = {"training": {"status": "succeeded", "failure": None, "metrics": METRICS}, "msg": "fine"}
STACK = {
    "driver": None,
    "gpus": [],
    "environments": [
        {"name": "main", "python": "3.11", "accelerator": "cpu", "frameworks": {"pytorch": "2.13.0", "another": "2"}}
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


@pytest.mark.parametrize(
    ("recorded", "remedy"),
    [
        ({}, "Run site, which has not set up this node yet."),
        ({"files": {"/etc/allreduce": "directory 0755 root:root"}}, "Run site again."),
        ({"package_holds": {"driver": {"kept": True}}}, "Run site again."),
        ({"records": ["tuning"]}, "Run site again."),
    ],
)
def test_what_to_do_is_true_of_a_node_that_site_never_set_up(recorded, remedy):
    variables = hostvars()
    facts = variables["gpu-1"]["ansible_facts"]
    facts["gpu_node_state"] = {**facts["gpu_node_state"], "environments": {}, **recorded}
    lines = summary(verification(["gpu-1"], ["gpu-1"], variables, SUCCEEDED, ""))["lines"]
    what = lines.index("  failed: main_python: missing; expected: 3.11")
    assert lines[what + 1 : what + 3] == ["    why: Python is missing.", f"    fix: {remedy}"]
    assert ("un site again" in " ".join(lines)) == (remedy == "Run site again.")


def test_what_a_check_says_fits_a_terminal_of_80_columns():
    long = {"name": "selinux_mode", "node": "gpu-1", "status": "failed", "measured": "67 " * 50, "expected": "e " * 50}
    unknown = {**long, "status": "unknown", "reason": "the node was not asked " * 5, "fix": ""}
    found = [{**long, "reason": "r " * 50, "fix": "do this " * 15}, unknown]
    document = {"nodes": {"gpu-1": {"checks": found}}, "cluster_checks": []}
    lines = summary(document)["lines"]
    assert max(len(line) for line in lines) <= 80
    assert "    why: the node was not asked the node was not asked the node was not asked" in lines
    assert [line[:9] for line in lines if "this" in line] == ["    fix: ", " " * 9]
    assert [line for line in lines if line.startswith("  unknown")] == ["  unknown: selinux_mode"]
    assert "".join(lines).count("67") == 50


def test_an_answer_that_cannot_be_has_its_remedy_apart():
    variables = hostvars()
    variables["gpu-1"]["ansible_facts"]["default_ipv4"] = {"address": "0.0.0.0/0"}
    (check,) = verification(["gpu-1"], ["gpu-1"], variables, SUCCEEDED, "")["nodes"]["gpu-1"]["checks"]
    assert check["reason"].endswith("is '0.0.0.0/0', but it must be the IP address of one host")
    assert check["fix"] == "find out why, and repair it or take it out of the inventory"


@pytest.mark.parametrize(
    ("contact", "reason", "fix"),
    [
        ({}, "the node could not be reached or measured", "see the play's output above, which says why"),
        (
            {"__stack_reached": {"unreachable": True, "msg": "ssh: \x1b[31mConnection\r\nrefused\r\n"}},
            "ssh: Connection refused",
            "check power, address, SSH user and key",
        ),
        (
            {"__stack_reached": {"failed": True, "msg": "sudo: a password is required"}, "__stack_root": {"rc": 1}},
            "sudo: a password is required",
            "allow it to use sudo there, or give its password with -K",
        ),
    ],
)
def test_a_lost_node_has_the_cause_and_the_remedy_of_the_first_contact(contact, reason, fix):
    variables = hostvars()
    variables["gpu-2"].update(contact)
    (check,) = verification(["gpu-2"], [], variables, SUCCEEDED, "")["nodes"]["gpu-2"]["checks"]
    assert (check["name"], check["status"]) == ("reachable", "failed")
    assert (check["reason"], check["fix"]) == (reason, fix)


NOTE = {
    "check": "oom_kills", "gpu": None, "expected": "none", "measured": "2 killed: python3", "severity": "note", "cause": "no memory",
    "action": "look at what the jobs need", "action_class": "application",
}  # fmt: skip


def test_a_note_is_told_and_is_no_failure():
    variables = hostvars()
    judged = {"check": "oom_kills", "category": "health", "expected": "none", "measured": "2 killed: python3"}
    health = {
        "verdict": "ok",
        "findings": [],
        "notes": [NOTE],
        "judged": [judged],
        "skipped_checks": [],
        "counters": {},
    }
    variables["gpu-1"]["__verify_health"] = health
    document = verification(["gpu-1"], ["gpu-1"], variables, SUCCEEDED, "")
    node = document["nodes"]["gpu-1"]
    assert node["gpu_health"]["notes"] == [NOTE]
    assert [one["status"] for one in node["checks"] if one["name"] == "oom_kills"] == ["passed"]
    told = [line for line in summary(document)["lines"] if "oom_kills" in line]
    assert told == ["  note: oom_kills: 2 killed: python3"]
    assert "    fix: Look at what the jobs need." in summary(document)["lines"]


def test_the_document_names_the_inventory_and_the_collection():
    variables = hostvars()
    for node in variables.values():
        node["inventory_file"] = "/home/ada/cluster/hosts.yml"
    document = verification(["gpu-1", "gpu-2"], ["gpu-1"], variables, SUCCEEDED, "", collection="1.2.3")
    assert (document["inventory"], document["collection"]) == ("cluster/hosts.yml", "1.2.3")
    parse(Verification, document)


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (["/home/ada/cluster/hosts.yml", "/home/ada/cluster/hosts.yml"], "cluster/hosts.yml"),
        (["/etc/prod/gpu.yml", "/etc/prod/login.yml"], "prod"),
        (["/srv/a/hosts", "/srv/b/hosts"], "a, b"),
        (["/hosts"], "hosts"),
        ([None, ""], ""),
        (["gpu-1,gpu-2,"], ""),
        ([], ""),
    ],
)
def test_an_inventory_is_named_as_people_know_it(files, name):
    assert inventory_name(files) == name


def test_the_verdict_names_failed_checks_only():
    document = verification(["gpu-2"], [], hostvars(), SUCCEEDED, "")
    assert summary(document)["verdict"] == "1 of 6 checks failed: reachable on gpu-2."
    document["nodes"] = {}
    assert summary(document)["verdict"] == ""


@pytest.mark.parametrize(
    ("statuses", "accept", "sentence"),
    [
        (["passed", "skipped"], False, ""),
        (["passed", "unknown"], False, "1 of 2 checks could not be decided: row_remapping on gpu-1."),
        (["passed", "unknown"], True, ""),
        (
            ["failed", "unknown"],
            False,
            "1 of 2 checks failed: row_remapping on gpu-1. 1 of 2 checks could not be decided: row_remapping on gpu-1.",
        ),
        (["failed", "unknown"], True, "1 of 2 checks failed: row_remapping on gpu-1."),
    ],
)
def test_what_is_unknown_is_no_success_unless_it_is_accepted(statuses, accept, sentence):
    checks = [{"name": "row_remapping", "node": "gpu-1", "status": status} for status in statuses]
    assert verdict({"nodes": {"gpu-1": {"checks": checks}}, "cluster_checks": []}, accept) == sentence


def test_the_summary_shows_what_did_not_pass():
    lines = summary(verification(["gpu-2"], [], hostvars(), SUCCEEDED, ""))["lines"]
    assert lines[0] == "gpu-2: failed (1 failed)"
    assert lines[1] == "  failed: reachable: no; expected: yes"
    assert lines[-1] == "cluster: passed (4 skipped, 1 passed)"


@pytest.mark.parametrize(
    ("health_verdict", "findings", "line"),
    [
        ("ok", [], "gpu-1: passed, GPUs ok (1 passed)"),
        ("reboot_required", [FINDING], "gpu-1: failed, GPUs reboot required (1 failed)"),
        ("unknown", [{**FINDING, "severity": "unknown"}], "gpu-1: incomplete, GPUs unknown (1 unknown)"),
    ],
)
def test_one_line_names_the_verdict_of_a_node(health_verdict, findings, line):
    checks = list(health.checks({}, {}, {"judged": [JUDGED], "findings": findings}))
    node = {"checks": checks, "gpu_health": {"verdict": health_verdict}}
    assert summary({"nodes": {"gpu-1": node}, "cluster_checks": []})["lines"][0] == line


def test_health_is_in_the_document_of_a_node_where_it_was_judged():
    variables = hostvars()
    judged = {
        "verdict": "degraded",
        "findings": [FINDING],
        "notes": [],
        "judged": [JUDGED],
        "skipped_checks": [],
        "counters": {},
    }
    result = {**judged, "changed": False}
    variables["gpu-1"]["__verify_health"] = result
    variables["gpu-2"]["__verify_health"] = {"skipped": True, "changed": False}
    nodes = verification(["gpu-1", "gpu-2"], ["gpu-1", "gpu-2"], variables, SUCCEEDED, "")["nodes"]
    assert nodes["gpu-1"]["gpu_health"] == judged
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
    assert [(c["status"], c["reason"], c["fix"]) for c in checks] == [
        ("failed", "Rank 1 failed. Last line: RuntimeError: refused", SEE)
    ]


def test_a_last_line_that_is_the_reason_is_not_repeated():
    failure = {"reason": "torchrun ended: RuntimeError: no GPU here", "tail": ["x", "RuntimeError: no GPU here."]}
    checks = collective_checks({"training": {"status": "failed", "failure": failure, "metrics": None}})
    assert checks[0]["reason"] == "torchrun ended: RuntimeError: no GPU here"


def test_a_run_that_never_started_fails_with_the_message():
    assert collective_checks({"msg": "There are not enough forks.\nmore"})[0]["reason"] == "There are not enough forks"


def test_a_refused_run_keeps_cause_and_remedy_apart():
    refused = {
        "msg": "Not enough forks; set forks to 4.",
        "problems": [{"what": "Not enough forks", "fix": "set forks to 4", "why": ""}],
    }
    (check,) = collective_checks(refused)
    assert (check["reason"], check["fix"]) == ("Not enough forks", "set forks to 4")


def test_wrong_numbers_fail_although_the_run_failed_with_them():
    wrong = dict(METRICS, checks=[dict(METRICS["checks"][0], passed=False, measured=[1, 1])])
    checks = collective_checks({"training": {"status": "failed", "failure": {}, "metrics": wrong}})
    assert [c["status"] for c in checks][0] == "failed"


def test_collectives_that_were_not_asked_for_are_skipped():
    assert [c["status"] for c in collective_checks({"skipped": True})] == ["skipped"]


def planned(stack, node, peers, hosts, nproc="auto", network_rounds=0):
    """The plan of a node among all of these hosts."""
    cluster = verification_cluster(hosts)
    return verification_plan(stack, node, hosts[node], cluster, peers, nproc, network_rounds)


def test_the_plan_names_modules_peers_and_the_environment_of_pytorch():
    assert planned(STACK, "gpu-1", ["gpu-1", "gpu-2"], hostvars()) == {
        "gpu_health": False,
        "gpu_count": 0,
        "nvidia_smi": False,
        "environments": {"main": ["torch"]},
        "peers": {"gpu-2": "10.0.0.2"},
        "torch_environment": "main",
        "collectives": {"device": "cpu", "nproc_per_node": "1"},
        "network": None,
    }


def computing(accelerator, said):
    """Variables of a node; said: what role verify noted of its GPUs, None if it noted nothing."""
    stack = {"environments": [{"name": "main", "accelerator": accelerator, "frameworks": {"pytorch": "2"}}]}
    noted = {} if said is None else {"__verify_gpu_compute": said}
    return {"ansible_facts": {"gpu_stack": stack}, **noted}


@pytest.mark.parametrize(
    ("nodes", "nproc", "device", "ranks"),
    [
        ([("cuda", True), ("cuda", True)], "auto", "cuda", "auto"),
        ([("cuda", None), ("cuda", None)], "auto", "cuda", "auto"),
        ([("cuda", True), ("cuda", True)], "2", "cuda", "2"),
        ([("cuda", False), ("cuda", False)], "auto", "cpu", "1"),
        ([("cuda", False), ("cuda", False)], "4", "cpu", "4"),
        ([("cuda", True), ("cuda", False)], "auto", "cpu", "1"),
        ([("cpu", True), ("cpu", True)], "auto", "cpu", "1"),
        ([("cpu", False), ("cpu", False)], "3", "cpu", "3"),
        ([("cuda", True), ("cpu", False)], "auto", "cuda", "auto"),
    ],
)
def test_collectives_run_on_gpus_unless_a_node_is_said_to_have_none_that_compute(nodes, nproc, device, ranks):
    hosts = {f"gpu-{number}": computing(*node) for number, node in enumerate(nodes)}
    stack = hosts["gpu-0"]["ansible_facts"]["gpu_stack"]
    plan = planned(stack, "gpu-0", [], hosts, nproc)
    assert plan["collectives"] == {"device": device, "nproc_per_node": ranks}


@pytest.mark.parametrize(
    ("accelerator", "said", "cuda", "skipped"),
    [
        ("cuda", None, "failed", []),
        ("cuda", True, "failed", []),
        ("cuda", False, "skipped", ["collectives_gpu"]),
        ("cpu", None, "passed", []),
        ("cpu", False, "passed", []),
    ],
)
@pytest.mark.parametrize("collectives", [SUCCEEDED, {"msg": "No start."}])
def test_what_needs_a_gpu_that_computes_is_skipped_where_none_does_and_judged_elsewhere(
    accelerator, said, cuda, skipped, collectives
):
    variables = computing(accelerator, said)
    answer = {"torch": {"version": "2", "cuda_available": False, "device_count": 0}}
    variables["__verify_probe"] = {"node_probe": {"environments": {"main": answer}}}
    document = verification(["gpu-1"], ["gpu-1"], {"gpu-1": variables}, collectives, "")
    assert [one["status"] for one in document["nodes"]["gpu-1"]["checks"] if one["name"] == "main_cuda"] == [cuda]
    told = [one for one in document["cluster_checks"] if one["name"] == "collectives_gpu"]
    assert [one["name"] for one in told if one["status"] == "skipped" and "gpu-1" in one["reason"]] == skipped
    assert document["nodes"]["gpu-1"]["gpu_compute"] is (said is not False)
    lines = summary(document)["lines"]
    assert ("  not checked: whether GPUs compute (verify_gpu_compute: false)" in lines) == (said is False)


def test_collectives_that_did_not_run_are_not_skipped_a_second_time():
    document = verification(["gpu-1"], ["gpu-1"], {"gpu-1": computing("cuda", False)}, {"skipped": True}, "")
    found = [one["name"] for one in document["cluster_checks"] if one["category"] == "collectives"]
    assert found == ["collectives"]


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
    plan = planned(stack, "gpu-1", [], {"gpu-1": {"ansible_facts": facts}})
    assert (plan["gpu_health"], plan["gpu_count"]) == (wanted, count)


def test_the_verdict_on_a_thousand_nodes_is_a_sentence():
    bad = {"name": "persistence_mode", "status": "failed"}
    nodes = {f"gpu-{number}": {"checks": [{**bad, "node": f"gpu-{number}"}]} for number in range(1, 1001)}
    nodes["gpu-7"]["checks"].append({"name": "xid", "status": "failed", "node": "gpu-7"})
    words = verdict({"nodes": nodes, "cluster_checks": []})
    assert words == "1001 of 1001 checks failed: persistence_mode on gpu-[1-1000]; xid on gpu-7."


def test_the_plan_has_whom_to_send_packets_of_full_size():
    plan = planned(STACK, "gpu-1", ["gpu-1", "gpu-2"], hostvars(), network_rounds=16)
    assert plan["network"] == {"name": "gpu-1", "address": "10.0.0.1", "peers": ["gpu-2"]}
    assert planned(STACK, "gpu-1", ["gpu-1"], hostvars(), network_rounds=16)["network"] is None


def test_a_thousand_nodes_are_tried_with_sixteen_others_each():
    names = [f"gpu-{number}" for number in range(1000)]
    variables = {name: {"gpu_cluster_address": f"10.0.{i // 250}.{i % 250 + 1}"} for i, name in enumerate(names)}
    cluster = verification_cluster(variables)
    met = {
        name: set(verification_plan(STACK, name, variables[name], cluster, names, "auto", 16)["network"]["peers"])
        for name in names[:40]
    }
    assert {len(others) for others in met.values()} == {16}
    assert all(one in met[other] for one in met for other in met[one] if other in met), (
        "each pair is tried from both ends"
    )


def test_the_network_is_in_the_document_with_its_checks():
    variables = hostvars()
    variables["gpu-2"] = {"ansible_facts": variables["gpu-1"]["ansible_facts"], "gpu_cluster_address": "10.0.0.2"}
    way = {"size": 1500, "full": False, "reached": True, "rtt": 0.2, "path_mtu": 1400, "source": "10.0.0.1"}
    seen = {"own_name": ["10.0.0.1"], "link": {"interface": "eth0", "mtu": 1500}, "paths": {"gpu-2": way}}
    variables["gpu-1"]["__verify_probe"] = {"node_probe": {"peers": {}, "network": seen}}
    for one in variables.values():
        one["__verify_network"] = {"peers": ["gpu-1", "gpu-2"], "mtu": 0, "rounds": 16, "bandwidth": False}
    document = verification(["gpu-1", "gpu-2"], ["gpu-1", "gpu-2"], variables, {"skipped": True}, "")
    assert document["network"]["pairs"] == [{"source": "gpu-1", "target": "gpu-2", "way": way}]
    failed = [
        (one["node"], one["name"])
        for node in document["nodes"].values()
        for one in node["checks"]
        if one["status"] == "failed"
    ]
    assert ("gpu-1", "path_mtu") in failed and ("gpu-2", "path_mtu") not in failed
    assert "path_mtu on gpu-1" in summary(document)["verdict"]


@pytest.mark.parametrize(
    ("gpus", "variables", "asked"),
    [
        ([], {}, False),  # role nvidia_driver leaves a node without a GPU alone
        ([], {"nvidia_driver_without_gpu": True}, True),
        ([{"name": "A40"}], {}, True),
        ([{"name": "A40"}], {"nvidia_driver_state": "absent"}, False),
    ],
)
def test_nvidia_smi_is_asked_on_nodes_that_get_the_driver(gpus, variables, asked):
    stack = {**STACK, "driver": {"version": "535.309.01", "branch": "535", "packages": []}, "gpus": gpus}
    there = hostvars()
    there["gpu-1"].update(variables)
    there["gpu-1"]["ansible_facts"]["gpu_stack"] = stack
    assert planned(stack, "gpu-1", ["gpu-1"], there)["nvidia_smi"] is asked
    checks = verification(["gpu-1"], ["gpu-1"], there, SUCCEEDED, "")["nodes"]["gpu-1"]["checks"]
    assert ("nvidia_smi" in {check["name"] for check in checks}) is asked


@pytest.mark.parametrize(("left_out", "status"), [([], "failed"), (["peer_vbios"], "skipped")])
def test_nodes_are_compared_with_each_other(left_out, status):
    gpu = {"index": 0, "seen_by": ["nvml"], "name": "NVIDIA H200", "power_limit_watts": {"current": None}, "mig": {"current": None},
           "max_clocks_mhz": None, "inforom_version": None, "memory_total_mib": None, "ecc": {"current": None}, "compute_mode": None}  # fmt: skip
    nodes = hostvars()
    for name, version in (("gpu-1", "96.00"), ("gpu-2", "95.00")):
        nodes[name]["ansible_facts"]["gpu_node"] = {"gpus": [{**gpu, "pci_bus_id": "x", "vbios_version": version}]}
        nodes[name]["verify_health_skip_checks"] = left_out
    document = verification(["gpu-1", "gpu-2"], ["gpu-1", "gpu-2"], nodes, SUCCEEDED, "")
    found = {one["name"]: (one["node"], one["status"]) for one in document["cluster_checks"]}
    assert found["peer_vbios"] == ("cluster", status)


@pytest.mark.parametrize(
    ("known", "is_read"),
    [
        ({}, False),
        ({"gpu-1": {}, "gpu-2": {"slurm_state": "absent"}}, False),
        ({"gpu-1": {}, "gpu-2": {"slurm_state": "external"}}, True),
    ],
)
def test_what_no_node_is_to_have_is_not_read_of_the_others(known, is_read):
    """GPUs of a thousand nodes take seconds to judge."""
    assert ("ansible_facts.gpu_node.gpus" in read_of_others(known)) is is_read
    assert bool(read_of_others(known)) is is_read
