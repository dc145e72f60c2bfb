# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users ask of role tuning, and what of it is refused by name."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.request import (
    problems,
    request,
    words,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.tables import load
from hypothesis import given
from hypothesis import strategies as st


def test_nothing_is_asked_by_default():
    assert request({}).present is False
    assert request({"tuning_state": "present"}).switches == {"governor": "performance", "idle_latency": "99"}


@pytest.mark.parametrize(
    ("name", "value", "attribute", "expected"),
    [
        (
            "tuning_sysctl",
            {"net/ipv4/tcp_rmem": "4096  87380 134217728"},
            "sysctl",
            {"net.ipv4.tcp_rmem": "4096 87380 134217728"},
        ),
        ("tuning_sysctl", {"vm.swappiness": 10, "vm.x": None}, "sysctl", {"vm.swappiness": "10", "vm.x": None}),
        ("tuning_sysctl", {"a.b": [1, 2], "a.c": True}, "sysctl", {"a.b": "1 2", "a.c": "1"}),
        ("tuning_idle_latency", 0, "switches", {"governor": "performance"}),
        ("tuning_governor", "", "switches", {"idle_latency": "99"}),
        (
            "tuning_limits",
            {"memlock": "infinity", "nofile": 4096},
            "limits",
            {"memlock": "unlimited", "nofile": "4096"},
        ),
        ("tuning_keep_ipc", "no", "logind", {}),
        ("tuning_keep_ipc", True, "logind", {"RemoveIPC": "no"}),
        ("tuning_limit_services", ["slurmd.service", "munge"], "services", ("slurmd", "munge")),
        ("groups", {"gpu_nodes": ["a", "b"]}, "neighbours", 2),
        ("tuning_neighbours", "900", "neighbours", 900),
        ("tuning_neighbours", 900, "neighbours", 900),
        ("groups", {}, "neighbours", 0),
        ("tuning_ranks_bound", "yes", "ranks_bound", True),
        ("tuning_ranks_bound", "no", "ranks_bound", False),
        ("tuning_state", "absent", "present", False),
        ("tuning_state", "present", "present", True),
        ("tuning_transport", "rdma", "transport", "rdma"),
        ("tuning_transparent_hugepage", "always", "switches", {
            "governor": "performance", "idle_latency": "99", "transparent_hugepage": "always",
        }),
        ("tuning_governor", None, "switches", {"idle_latency": "99"}),
        ("tuning_irq_interfaces", ["ens1"], "interfaces", ("ens1",)),
        ("tuning_kernel_arguments", ["iommu=pt"], "arguments", ("iommu=pt",)),
    ],
)  # fmt: skip
def test_what_variables_mean(name, value, attribute, expected):
    assert getattr(request({name: value}), attribute) == expected


@pytest.mark.parametrize(
    ("variables", "codes"),
    [
        ({"tuning_kernel_arguments": ["iommu=pt", "init_on_alloc=0", "pci=realloc=off"]}, []),
        ({"tuning_kernel_arguments": ["pci=noacs"]}, ["tuning_refused_argument"]),
        ({"tuning_kernel_arguments": ["pci=realloc=off,noacs"]}, ["tuning_refused_argument"]),
        ({"tuning_kernel_arguments": ["pcie_acs_override=downstream"]}, ["tuning_refused_argument"]),
        ({"tuning_kernel_arguments": ["pci=disable_acs_redir=pci:0:0"]}, ["tuning_refused_argument"]),
        ({"tuning_kernel_arguments": ["processor.max_cstate=1", "idle=poll", "intel_iommu=off"]}, ["tuning_refused_argument"] * 3),
        ({"tuning_kernel_arguments": ["init=/bin/sh", "iommu=pt;reboot", "a b"]}, ["tuning_unknown_argument"] * 3),
        ({"tuning_sysctl": {"kernel.sched_latency_ns": 1, "kernel.sched_min_granularity_ns": 1}}, ["tuning_refused_sysctl"] * 2),
        ({"tuning_sysctl": {"vm.zone_reclaim_mode": 0, "vm.overcommit_memory": 2}}, []),
        ({"tuning_sysctl": {"vm.zone_reclaim_mode": 1, "vm.overcommit_memory": 1}}, ["tuning_refused_sysctl"] * 2),
        ({"tuning_sysctl": {"net.core.rmem_default": 134217728, "net.core.busy_poll": 50}}, ["tuning_refused_sysctl"] * 2),
        ({"tuning_sysctl": {"net.ipv4.ip_local_port_range": "1192 65535"}}, ["tuning_refused_sysctl"]),
        ({"tuning_sysctl": {"net.ipv4.ip_local_port_range": "50000 51000"}}, []),
        ({"tuning_sysctl": {"net/ipv4/ip_local_port_range": [1192, 65535]}}, ["tuning_refused_sysctl"]),
        ({"tuning_sysctl": {"kernel.sched_latency_ns": None}}, []),
        ({"tuning_sysctl": {"swappiness": 1, "vm.x": "", "vm..x": 1, "vm.x\ny": 1}}, ["tuning_no_sysctl"] * 4),
        ({"tuning_limits": {"memlock": "unlimited", "nofile": 4096, "nproc": "infinity"}}, []),
        ({"tuning_limits": {"stack": 1}}, ["tuning_unknown_limit"]),
        ({"tuning_limits": {"memlock": "64G", "nofile": "unlimited"}}, ["tuning_no_limit"] * 2),
        ({"tuning_limit_services": ["../x", "slurmd"]}, ["tuning_no_name"]),
        ({"tuning_irq_interfaces": ["ens1", "a b", ".."]}, ["tuning_no_name"] * 2),
    ],
)  # fmt: skip
def test_what_is_refused(variables, codes):
    found = list(problems(request(variables), load()))
    assert [one.code for one in found] == codes
    assert all(one.subject in describe(one) and "{" not in describe(one) for one in found)


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"tuning_sysctl": {"swappiness": 1}}, (
            "tuning_sysctl has swappiness with the value '1'; give a key such as vm.swappiness and its value, or null to leave the key alone."
        )),
        ({"tuning_sysctl": {"vm.x": ""}}, (
            "tuning_sysctl has vm.x with the value ''; give a key such as vm.swappiness and its value, or null to leave the key alone."
        )),
        ({"tuning_sysctl": {"swappiness": None}}, (
            "tuning_sysctl has swappiness with the value ''; give a key such as vm.swappiness and its value, or null to leave the key alone."
        )),
        ({"tuning_kernel_arguments": ["init=/bin/sh"]}, (
            "tuning_kernel_arguments has init=/bin/sh; choose from iommu=pt, iommu.passthrough=1, init_on_alloc=0, pci=realloc=off, "
            "numa_balancing=disable, and set others with the distribution's own tool."
        )),
        ({"tuning_limits": {"stack": 1}}, "tuning_limits has stack; choose from memlock, nofile, nproc."),
        ({"tuning_limits": {"memlock": "64G"}}, (
            "tuning_limits has memlock '64G'; set it to a number or, except for nofile, to unlimited."
        )),
        ({"tuning_limit_services": ["../x"]}, "tuning_limit_services has '../x', which is not a valid name; correct it."),
        ({"tuning_irq_interfaces": ["a b"]}, "tuning_irq_interfaces has 'a b', which is not a valid name; correct it."),
    ],
)  # fmt: skip
def test_what_is_refused_is_one_sentence(variables, sentence):
    assert [describe(one) for one in problems(request(variables), load())] == [sentence]


def test_a_refused_value_is_shown():
    (found,) = problems(request({"tuning_sysctl": {"vm.zone_reclaim_mode": 1}}), load())
    assert describe(found).startswith("tuning_sysctl sets vm.zone_reclaim_mode to '1', which is refused (")


def test_a_refusal_says_why_and_by_whom():
    (found,) = problems(request({"tuning_kernel_arguments": ["pci=noacs"]}), load())
    assert describe(found) == (
        "tuning_kernel_arguments has pci=noacs, which is refused (there is no such option; the kernel only logs 'PCI: Unknown "
        "option'; Linux, drivers/pci/pci.c); remove it."
    )


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=4))
def test_a_value_is_written_once_however_it_is_given(numbers):
    text = "\t".join(map(str, numbers))
    assert words(numbers) == words(text) == words(words(text)) == " ".join(map(str, numbers))
