# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a decision to files, values, arguments and profile: one owner for each value."""

from __future__ import annotations

import configparser
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.gpu_node import GpuNode
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.tuning import (
    Arguments,
    Logind,
    Switch,
    Tuned,
    TunedNode,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.decide import decide
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.plan import plan
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.request import request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.tables import load

SERVER = TunedNode(
    sysctl={"vm.swappiness": Switch("60", "60"), "net.core.rmem_max": Switch("212992", "212992")},
    switches={
        "governor": Switch("schedutil", "schedutil"),
        "idle_latency": Switch("0", "0"),
        "transparent_hugepage": Switch("madvise", "madvise"),
    },
    arguments=Arguments("grubby", ("ro",), ("ro",)),
)
OWNED = replace(
    SERVER,
    tuned=Tuned(
        True, "virtual-guest", "auto", "/etc/tuned/allreduce", ("accelerator-performance", "throughput-performance")
    ),
)
SYSCTL = """\
# Written by role allreduce.gpu.tuning; tuning_state: absent puts back what was there before.
# pages of a training stay in memory before the page cache gives way (tuned, profiles/throughput-performance and accelerator-performance)
vm.swappiness = 10
# largest receive buffer that a program may ask for (reference system S2)
net.core.rmem_max = 134217728
"""
GOVERNOR = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"


def planned(node=SERVER, **variables):
    wanted = request({"tuning_state": "present", "tuning_transport": "tcp"} | variables)
    found = plan(decide(wanted, node, GpuNode(), load()), wanted, node)
    found["texts"] = {one["path"]: one["content"] for one in found["files"]}
    return found


def test_one_file_with_a_reason_and_a_source_for_each_line():
    assert planned()["texts"]["/etc/sysctl.d/90-allreduce.conf"] == SYSCTL


def test_what_is_declared_is_said_to_be():
    text = planned(tuning_sysctl={"vm.swappiness": 1})["texts"]["/etc/sysctl.d/90-allreduce.conf"]
    assert "# declared in the inventory\nvm.swappiness = 1\n" in text


def test_the_reference_system_gets_the_lines_of_its_source():
    """S2's, also where its own adapters make training use RDMA."""
    path = Path(__file__).resolve().parents[6] / "inventories" / "a100-el8" / "hosts.yml"
    variables = yaml.safe_load(path.read_text("utf-8"))["gpu_nodes"]["vars"]
    declared = {name: value for name, value in variables.items() if name.startswith("tuning_")}
    node = replace(SERVER, sysctl={key: Switch("1", "1") for key in declared["tuning_sysctl"]})
    text = planned(node, **declared, tuning_transport="rdma")["texts"]["/etc/sysctl.d/90-allreduce.conf"]
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        "vm.swappiness = 10",
        "net.core.rmem_max = 134217728",
        "net.core.wmem_max = 134217728",
        "net.ipv4.tcp_rmem = 4096 87380 134217728",
        "net.ipv4.tcp_wmem = 4096 87380 134217728",
    ]


def test_values_go_to_the_kernel_now_and_switches_to_the_unit():
    found = planned()
    assert {one["path"]: one["value"] for one in found["values"]} == {
        "/proc/sys/vm/swappiness": "10",
        "/proc/sys/net/core/rmem_max": "134217728",
        GOVERNOR: "performance",
        "/sys/devices/system/cpu/cpu[0-9]*/power/pm_qos_resume_latency_us": "99",
    }
    at_boot = json.loads(found["texts"]["/etc/allreduce/tuning.json"])
    assert [one["value"] for one in at_boot["values"]] == ["performance", "99"]
    assert (found["boot"], found["profile"]) == (True, "")


def test_where_tuned_is_in_charge_nothing_else_is():
    found = planned(OWNED, tuning_transparent_hugepage="always")
    assert list(found["texts"]) == ["/etc/tuned/allreduce/tuned.conf"]
    assert (found["boot"], found["profile"]) == (False, "allreduce")
    profile = configparser.ConfigParser()
    profile.read_string(found["texts"]["/etc/tuned/allreduce/tuned.conf"])
    assert profile["main"]["include"] == "accelerator-performance"
    assert dict(profile["sysctl"]) == {"vm.swappiness": "10", "net.core.rmem_max": "134217728"}
    assert dict(profile["cpu"]) == {"governor": "performance", "force_latency": "99"}
    assert dict(profile["vm"]) == {"transparent_hugepages": "always"}
    # It holds idle states off by itself; the rest is recorded, so that it can be put back.
    assert {one["path"].rpartition("/")[2] for one in found["values"]} == {
        "swappiness", "rmem_max", "scaling_governor", "enabled",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("bases", "latency", "include"),
    [
        (("accelerator-performance", "throughput-performance"), 99, "include=accelerator-performance"),
        (("throughput-performance",), 99, "include=throughput-performance"),
        # The first one holds idle states off, which this node shall not.
        (("accelerator-performance", "throughput-performance"), 0, "include=throughput-performance"),
        ((), 99, None),
    ],
)
def test_what_our_profile_begins_with(bases, latency, include):
    node = replace(OWNED, tuned=replace(OWNED.tuned, bases=bases))
    text = planned(node, tuning_idle_latency=latency)["texts"]["/etc/tuned/allreduce/tuned.conf"]
    assert [line for line in text.splitlines() if line.startswith("include")] == ([include] if include else [])


def test_interrupts_are_ours_beside_tuned():
    """It has no word for them that all releases know."""
    found = planned(OWNED, tuning_irq_interfaces=["ens1"])
    assert json.loads(found["texts"]["/etc/allreduce/tuning.json"]) == {"values": [], "interfaces": ["ens1"]}
    assert (found["boot"], found["interfaces"]) == (True, ["ens1"])


def test_limits_of_sessions_managers_and_services():
    limits = {"memlock": "unlimited", "nofile": 1048576, "nproc": 65536}
    texts = planned(tuning_limits=limits, tuning_limit_services=["slurmd"])["texts"]
    sessions = texts["/etc/security/limits.d/90-allreduce.conf"].splitlines()
    assert [line for line in sessions if not line.startswith("#")] == [
        "* - memlock unlimited", "root - memlock unlimited", "* - nofile 1048576", "root - nofile 1048576",
        "* - nproc 65536", "root - nproc 65536",
    ]  # fmt: skip
    for manager in ("system", "user"):
        lines = texts[f"/etc/systemd/{manager}.conf.d/90-allreduce.conf"].splitlines()
        assert [line for line in lines if not line.startswith("#")] == [
            "[Manager]", "DefaultLimitMEMLOCK=infinity", "DefaultLimitNOFILE=1024:1048576", "DefaultLimitNPROC=65536",
        ]  # fmt: skip
    lines = texts["/etc/systemd/system/slurmd.service.d/90-allreduce.conf"].splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "[Service]", "LimitMEMLOCK=infinity", "LimitNOFILE=1048576", "LimitNPROC=65536",
    ]  # fmt: skip


@pytest.mark.parametrize(("declared", "session"), [(4194304, "4096"), (4194305, "4097"), ("unlimited", "unlimited")])
def test_sessions_have_locked_memory_in_kib(declared, session):
    """limits.conf(5); systemd and the kernel have bytes."""
    texts = planned(tuning_limits={"memlock": declared})["texts"]
    assert f"* - memlock {session}\n" in texts["/etc/security/limits.d/90-allreduce.conf"]
    value = "infinity" if declared == "unlimited" else declared
    assert f"DefaultLimitMEMLOCK={value}\n" in texts["/etc/systemd/system.conf.d/90-allreduce.conf"]


def test_a_drop_in_of_logind():
    texts = planned(replace(SERVER, logind=Logind("yes")))["texts"]
    text = texts["/etc/systemd/logind.conf.d/90-allreduce.conf"]
    lines = text.splitlines()
    assert text.endswith("\n") and lines[1] == "[Login]" and lines[2].startswith("# ") and lines[3:] == ["RemoveIPC=no"]


def test_a_container_gets_no_unit_and_no_file_without_a_line():
    found = planned(
        replace(SERVER, container=True), tuning_irq_interfaces=["ens1"], tuning_kernel_arguments=["iommu=pt"]
    )
    assert found == {
        "files": [], "values": [], "interfaces": [], "arguments": [], "profile": "", "boot": False, "texts": {},
    }  # fmt: skip


def test_the_tuned_of_a_container_is_left_alone():
    """Its profile would change the governor of the container's host."""
    sysctl = {**SERVER.sysctl, "net.ipv4.tcp_rmem": Switch("4096 131072 6291456", "4096 131072 6291456")}
    found = planned(replace(OWNED, container=True, sysctl=sysctl))
    assert (found["profile"], list(found["texts"])) == ("", ["/etc/sysctl.d/90-allreduce.conf"])


def test_arguments_are_passed_on():
    assert planned(tuning_kernel_arguments=["iommu=pt"])["arguments"] == ["iommu=pt"]


def test_the_profile_of_tuned_is_told_whole():
    texts = planned(OWNED, tuning_transparent_hugepage="always")["texts"]
    assert texts["/etc/tuned/allreduce/tuned.conf"] == (
        "# Written by role allreduce.gpu.tuning; tuning_state: absent puts back what was there before.\n"
        "[main]\nsummary=Training with several GPUs\ninclude=accelerator-performance\n\n[sysctl]\n"
        "# pages of a training stay in memory before the page cache gives way (tuned, profiles/throughput-performance and "
        "accelerator-performance)\nvm.swappiness=10\n"
        "# largest receive buffer that a program may ask for (reference system S2)\nnet.core.rmem_max=134217728\n\n"
        "[cpu]\ngovernor=performance\nforce_latency=99\n\n[vm]\ntransparent_hugepages=always\n"
    )


def test_a_profile_has_no_empty_section():
    text = planned(replace(OWNED, sysctl={}, switches={}, tuned=replace(OWNED.tuned, bases=())))["texts"]
    assert text["/etc/tuned/allreduce/tuned.conf"].splitlines()[1:] == ["[main]", "summary=Training with several GPUs"]


def test_each_limit_stands_below_its_reason():
    texts = planned(tuning_limits={"nproc": 65536}, tuning_limit_services=["slurmd"])["texts"]
    head = "# Written by role allreduce.gpu.tuning; tuning_state: absent puts back what was there before.\n"
    why = "# declared in the inventory\n"
    for path, body in {
        "/etc/security/limits.d/90-allreduce.conf": f"{why}* - nproc 65536\nroot - nproc 65536\n",
        "/etc/systemd/system.conf.d/90-allreduce.conf": f"[Manager]\n{why}DefaultLimitNPROC=65536\n",
        "/etc/systemd/user.conf.d/90-allreduce.conf": f"[Manager]\n{why}DefaultLimitNPROC=65536\n",
        "/etc/systemd/system/slurmd.service.d/90-allreduce.conf": f"[Service]\n{why}LimitNPROC=65536\n",
    }.items():
        assert texts[path] == head + body


def test_everybody_may_read_the_files():
    files = planned(replace(SERVER, logind=Logind("yes")), tuning_limits={"nproc": 65536})["files"]
    assert len(files) == 6 and {one["mode"] for one in files} == {"0644"}


def test_the_unit_gets_paths_with_their_values():
    found = planned(tuning_irq_interfaces=["ens1"], tuning_idle_latency=0)
    at_boot = {"values": [{"path": GOVERNOR, "value": "performance"}], "interfaces": ["ens1"]}
    assert json.loads(found["texts"]["/etc/allreduce/tuning.json"]) == at_boot
    assert found["texts"]["/etc/allreduce/tuning.json"].endswith("}\n")
