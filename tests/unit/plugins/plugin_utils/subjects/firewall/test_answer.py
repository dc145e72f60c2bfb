# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From variables and facts to the options of module firewall, and to sentences."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.drift import checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.door import told
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import Problem
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.answer import SUBJECT
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.plan import SYSCTL, parse_reserved
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.request import READS_OF_OTHERS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.subject import Node

from tests.support.subjects import compare_node, decide_node

GROUPS = {"gpu_nodes": ["gpu-1", "gpu-2"]}
BOOT = [{"path": "/etc/systemd/system/allreduce-firewall.service", "content": "[Unit]\n"}]
KERNEL = {"port_range": "32768 60999", "reserved": "8080,50007", "reserved_before": "8080,50007"}
FACT = {"interfaces": {"eth0": ["10.0.0.1"]}, "ssh_ports": [22], "nft": {"installed": True}, "kernel": KERNEL}


def ask(fact=None, **variables):
    hostvars = {"gpu-1": {"gpu_cluster_address": "10.0.0.1", **variables}, "gpu-2": {"gpu_cluster_address": "10.0.0.2"}}
    return decide_node(SUBJECT, "gpu-1", hostvars, GROUPS, {"gpu_firewall": {**FACT, **(fact or {})}}, BOOT)


@pytest.mark.parametrize(
    ("fact", "owner", "paths"),
    [
        ({}, "nftables", ["/etc/allreduce/firewall.nft", BOOT[0]["path"]]),
        ({"ufw": {"active": True}}, "ufw", ["/etc/allreduce/firewall.nft", BOOT[0]["path"]]),
        (
            {"firewalld": {"active": True, "version": "2.3"}},
            "firewalld",
            [
                "/etc/firewalld/ipsets/allreduce-peers4.xml",
                "/etc/firewalld/ipsets/allreduce-peers6.xml",
                "/etc/firewalld/policies/allreduce.xml",
            ],
        ),
    ],
)
def test_files_of_each_owner(fact, owner, paths):
    plan = ask(fact)["plan"]
    assert plan["owner"] == owner and [one["path"] for one in plan["files"]] == paths and plan["values"] == []
    assert "10.0.0.2" in "".join(one["content"] for one in plan["files"])


def test_strict_mode_narrows_the_kernel_s_range_and_reserves_what_services_have():
    plan = ask(firewall_strict=True, firewall_open_ports=[9100])["plan"]
    assert {one["path"]: one["value"] for one in plan["values"]} == {
        "/proc/sys/net/ipv4/ip_local_port_range": "50000 50999",
        "/proc/sys/net/ipv4/ip_local_reserved_ports": "8080,9100,29400,29500,50007",
    }
    (text,) = [one["content"] for one in plan["files"] if one["path"] == SYSCTL]
    assert text.splitlines()[-2:] == [
        "net.ipv4.ip_local_port_range = 50000 50999",
        "net.ipv4.ip_local_reserved_ports = 8080,9100,29400,29500,50007",
    ]


def test_a_port_that_is_reserved_no_more_is_let_go():
    """What was reserved before the first change counts, not what we have reserved since."""
    kernel = {**KERNEL, "reserved": "8080,9100,29400,29500,50007"}
    values = ask({"kernel": kernel}, firewall_strict=True, firewall_ports=[])["plan"]["values"]
    assert values[1]["value"] == "8080,50007"


@pytest.mark.parametrize(("text", "expected"), [(None, ()), ("", ()), ("8080,9000-9002", ((8080, 8080), (9000, 9002)))])
def test_reserved_ports(text, expected):
    assert parse_reserved(text) == expected


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"firewall_addresses": "nonsense"}, "firewall_addresses has 'nonsense', which is not an IP address"),
        ({"firewall_interfaces": ["eth9"]}, "firewall_interfaces has eth9, which this node lacks; choose from eth0."),
        ({"gpu_cluster_address": ""}, "The training address of gpu-1 is not known"),
    ],
)
def test_what_is_refused_is_one_sentence(variables, sentence):
    found = ask(**variables)
    assert found["plan"] is None and len(found["problems"]) == 1 and sentence in found["problems"][0]


def test_a_value_of_another_node_is_refused_once():
    hostvars = {name: {"gpu_cluster_address": "10.0.0.1", "firewall_ports": ["x"]} for name in GROUPS["gpu_nodes"]}
    assert len(decide_node(SUBJECT, "gpu-1", hostvars, GROUPS, {})["problems"]) == 1


def test_a_fact_of_the_wrong_shape():
    for judge in (ask, lambda fact: judged("present", gpu_firewall=fact)):
        with pytest.raises(DocumentError, match=r"^gpu_firewall\.ssh_ports"):
            judge({"ssh_ports": "22"})


def judged(state, recorded=False, **facts):
    hostvars = {name: {"gpu_cluster_address": f"10.0.0.{place}"} for place, name in enumerate(GROUPS["gpu_nodes"], 1)}
    hostvars["gpu-1"].update(firewall_state=state) if state else None
    facts = {"gpu_node_state": {"records": ["firewall"] if recorded else []}, **facts}
    return [(one.subject, one.status.value) for one in compare_node(SUBJECT, "gpu-1", hostvars, GROUPS, facts)]


@pytest.mark.parametrize(
    ("state", "recorded", "expected"),
    [
        (None, False, []),
        ("absent", False, []),
        ("disabled", True, []),
        (None, True, [("firewall", "unwanted")]),
        ("present", False, [("firewall", "unknown")]),
    ],
)
def test_what_is_judged_without_a_look_at_the_firewall(state, recorded, expected):
    assert judged(state, recorded) == expected


def test_what_is_judged():
    assert judged("present", gpu_firewall=FACT) == [("rules of nftables", "missing"), ("peers", "missing")]
    two = {**FACT, "firewalld": {"active": True, "version": "2"}, "ufw": {"active": True}}
    assert judged("present", gpu_firewall=two) == [("firewall", "unknown")]


WATCHED = {"monitoring_state": "present"}
WRONG = {
    "firewall_addresses": ["x"],
    "firewall_extra_sources": ["x"],
    "firewall_interfaces": ["a/b"],
    "firewall_open_ports": ["x"],
    "firewall_port_range": "x",
    "firewall_ports": ["x"],
}
# Which other host has what, so that the answer for gpu-1 is another one without it.
OTHERS = [
    ("gpu-2", {}, "gpu_cluster_address"),
    ("gpu-2", {"gpu_cluster_address": "", "ansible_facts": {"default_ipv4": {"address": "10.0.0.7"}}}, "ansible_facts.default_ipv4.address"),
    ("ctl", {"gpu_cluster_address": "", "ansible_host": "10.9.0.1"}, "ansible_host"),
    *(("gpu-2", {name: value}, name) for name, value in WRONG.items()),
]  # fmt: skip


@pytest.mark.parametrize(("other", "variables", "path"), OTHERS)
def test_what_is_read_of_other_hosts_is_what_the_answer_needs(other, variables, path):
    groups = {**GROUPS, "controllers": ["ctl"]}
    hostvars = {
        name: {"gpu_cluster_address": f"10.0.0.{place}"} for place, name in enumerate(("gpu-1", "gpu-2", "ctl"), 1)
    }
    hostvars["gpu-1"] |= WATCHED
    hostvars[other] |= variables

    def answered(paths):
        known = {**told(hostvars, hostvars, paths).values, "gpu-1": hostvars["gpu-1"]}
        return decide_node(SUBJECT, "gpu-1", known, groups, {"gpu_firewall": FACT}, BOOT)

    whole = decide_node(SUBJECT, "gpu-1", hostvars, groups, {"gpu_firewall": FACT}, BOOT)
    assert answered(READS_OF_OTHERS) == whole
    assert answered([one for one in READS_OF_OTHERS if one != path]) != whole


def test_each_of_them_has_a_case():
    assert {path for _other, _variables, path in OTHERS} == set(READS_OF_OTHERS)


@pytest.mark.parametrize(
    ("controller", "variables", "let_in"),
    [
        ({"ansible_host": "10.9.0.1"}, WATCHED, True),
        ({"gpu_cluster_address": "10.9.0.1", "ansible_host": "login.example.org"}, WATCHED, True),
        ({"ansible_host": "10.9.0.1"}, {}, False),
    ],
)
def test_who_asks_the_exporters_is_let_in(controller, variables, let_in):
    hostvars = {
        "gpu-1": {"gpu_cluster_address": "10.0.0.1", **variables},
        "gpu-2": {"gpu_cluster_address": "10.0.0.2"},
        "ctl": controller,
    }
    groups = {**GROUPS, "controllers": ["ctl", "gpu-2"]}
    plan = decide_node(SUBJECT, "gpu-1", hostvars, groups, {"gpu_firewall": FACT}, BOOT)["plan"]
    assert ("10.9.0.1" in plan["files"][0]["content"]) is let_in


def test_who_asks_and_has_no_known_address_is_named():
    hostvars = {
        "gpu-1": {"gpu_cluster_address": "10.0.0.1", **WATCHED},
        "gpu-2": {"gpu_cluster_address": "10.0.0.2"},
        "ctl": {},
    }
    found = decide_node(SUBJECT, "gpu-1", hostvars, {**GROUPS, "controllers": ["ctl"]}, {"gpu_firewall": FACT}, BOOT)
    assert [one[:46] for one in found["problems"]] == ["The training address of ctl is not known, and "]
    known = {**hostvars, "ctl": {"gpu_cluster_address": "10.9.0.1"}}
    (text,) = [
        one["content"]
        for variables in [{**known, "gpu-1": {**known["gpu-1"], "firewall_strict": True}}]
        for one in decide_node(
            SUBJECT, "gpu-1", variables, {**GROUPS, "controllers": ["ctl"]}, {"gpu_firewall": FACT}, BOOT
        )["plan"]["files"][:1]
    ]
    assert "9100" in text and "9400" in text


def test_who_schedules_is_let_in_to_slurmd_and_to_what_srun_waits_at():
    hostvars = {
        "gpu-1": {"gpu_cluster_address": "10.0.0.1", "slurm_state": "present", "firewall_strict": True},
        "gpu-2": {"gpu_cluster_address": "10.0.0.2"},
        "ctl": {"gpu_cluster_address": "10.9.0.1"},
    }
    groups = {**GROUPS, "controllers": ["ctl"]}
    text = decide_node(SUBJECT, "gpu-1", hostvars, groups, {"gpu_firewall": FACT}, BOOT)["plan"]["files"][0]["content"]
    assert "10.9.0.1" in text and "6818" in text and "61001-64000" in text and "9100" not in text


@pytest.mark.parametrize("name", ["monitoring_state", "slurm_state"])
def test_the_role_is_told_what_else_runs_on_the_node(name):
    """Action subject gives a subject no other variables than those that it names."""
    assert name in SUBJECT.variables


def test_only_root_reads_who_may_come_in():
    """firewalld's own files have mode 0644; what the kernel keeps is no secret."""
    modes = {one["path"]: one.get("mode") for one in ask(firewall_strict=True)["plan"]["files"]}
    assert modes == {"/etc/allreduce/firewall.nft": "0600", SYSCTL: "0644", BOOT[0]["path"]: None}
    files = ask({"firewalld": {"active": True, "version": "2.3"}}, firewall_strict=True)["plan"]["files"]
    assert len(files) == 4 and {one["mode"] for one in files} == {"0644"}


def test_the_file_for_the_kernel_is_told_whole():
    (text,) = [one["content"] for one in ask(firewall_strict=True)["plan"]["files"] if one["path"] == SYSCTL]
    assert text == (
        "# Written by role allreduce.gpu.firewall; changes made here are lost.\n"
        "# NCCL and gloo listen on ephemeral ports that no variable pins; peers may reach these, and services keep theirs.\n"
        "net.ipv4.ip_local_port_range = 50000 50999\n"
        "net.ipv4.ip_local_reserved_ports = 8080,29400,29500,50007\n"
    )


@pytest.mark.parametrize(
    ("fact", "packages"),
    [
        ({}, []),
        ({"nft": {"installed": False}}, ["nftables"]),
        ({"nft": {"installed": False}, "ufw": {"active": True}}, ["nftables"]),
        ({"nft": {"installed": False}, "firewalld": {"active": True, "version": "2.3"}}, []),
    ],
)
def test_who_loads_the_rules_is_installed_first(fact, packages):
    assert ask(fact)["packages"] == packages


@pytest.mark.parametrize(
    ("names", "held", "lacking"),
    [
        (["eth0", "eth7"], ["lo", "eth0"], ["eth7"]),
        # Ansible's facts write "_" there.
        (["bond0.7", "ib-0"], ["bond0_7", "ib_0"], []),
        (["bond0.7"], ["bond0.7"], []),
        ("eth8,eth9", ["lo", "eth0"], ["eth8", "eth9"]),
        (["eth7"], [], []),
        (["eth7"], None, []),
        ([], ["lo", "eth0"], []),
    ],
)
def test_interfaces_that_facts_lack_are_told_before_anything_is_touched(names, held, lacking):
    node = Node("gpu-1", {"firewall_interfaces": names}, {} if held is None else {"interfaces": held})
    assert list(SUBJECT.misfits(node)) == [
        Problem("firewall_lacks_interface", one, {"nodes": ["gpu-1"], "interfaces": sorted(held)}) for one in lacking
    ]


def test_a_request_that_cannot_be_meant_is_not_judged():
    hostvars = {"gpu-1": {"gpu_cluster_address": "10.0.0.1", "firewall_state": "present", "firewall_ports": ["x"]}}
    (one,) = compare_node(SUBJECT, "gpu-1", hostvars, {"gpu_nodes": ["gpu-1"]}, {"gpu_firewall": FACT})
    assert (one.subject, one.status.value, one.kind) == ("firewall", "unknown", "rules")


def test_rules_that_need_an_address_which_is_not_known_are_not_judged_and_it_is_named():
    hostvars = {"gpu-1": {"gpu_cluster_address": "10.0.0.1", "firewall_state": "present"}, "gpu-2": {}}
    found = compare_node(SUBJECT, "gpu-1", hostvars, GROUPS, {"gpu_firewall": FACT})
    (one,) = checks(found)
    assert (one["name"], one["status"], one["fix"]) == ("firewall_rules", "unknown", "")
    assert one["reason"] == (
        "firewall could not be judged: The training address of gpu-2 is not known, and without it gpu-2 would be shut out; "
        "set gpu_cluster_address there, or run without --limit"
    )


def test_a_node_alone_and_outside_every_group():
    hostvars = {"gpu-1": {"gpu_cluster_address": "10.0.0.1"}}
    found = decide_node(SUBJECT, "gpu-1", hostvars, {}, {"gpu_firewall": FACT}, BOOT)
    assert found["problems"] == [] and "elements = { 10.0.0.1 }" in found["plan"]["files"][0]["content"]
    hostvars["gpu-1"]["firewall_state"] = "present"
    judged = compare_node(SUBJECT, "gpu-1", hostvars, {}, {"gpu_firewall": FACT})
    assert [(one.subject, one.desired) for one in judged] == [
        ("rules of nftables", "as declared"),
        ("peers", "1 peers"),
    ]
