# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NCCL's file says: a line for a measured reason, nothing where NCCL decides as well itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.nccl import NcclNode, Subnet
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.nccl.decide import (
    HEAD,
    NOTHING,
    content,
    decide,
    files,
    interface_choice,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.nccl.request import request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology.recorded import parse_topology, recorded_node

FIXTURES = Path(__file__).resolve().parents[5] / "fixtures" / "topologies"
EXPECTED = yaml.safe_load((FIXTURES / "expected.yml").read_text())
UP = {"state": "ACTIVE", "link_layer": "InfiniBand", "rate_gbps": 200}
TWO = NcclNode(interfaces=(Subnet("eth0", "10.0.0.0/24"), Subnet("eth1", "10.1.0.0/24")))


def machine(name):
    text = (FIXTURES / f"{name}.txt").read_text()
    return recorded_node(text, dict.fromkeys(parse_topology(text)["nics"], UP))


UNMEASURED = NcclNode()


def lines(gpu_node, node=UNMEASURED, address="10.1.0.5", **variables):
    found = decide(request({"nccl_conf_variables": variables}), node, gpu_node, address)
    return {one.name: (one.value, one.reason) for one in found}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_line_for_a_recorded_machine_says_what_was_measured(name):
    found = lines(machine(name))
    assert found.get("NCCL_IB_HCA", (None,))[0] == EXPECTED[name]["rails"]
    assert set(found) <= {"NCCL_IB_HCA"}
    for _dummy, reason in found.values():
        assert reason.startswith("Measured: these adapters ") and "; NCCL itself would also take " in reason


def test_machines_of_both_kinds_are_recorded():
    assert {EXPECTED[name]["rails"] is None for name in EXPECTED} == {True, False}


@pytest.mark.parametrize("gpu_node", [{}, {"gpus": [], "nics": []}])
def test_nothing_is_measured_without_gpus(gpu_node):
    assert lines(gpu_node, TWO) == {}


def test_a_reason_stands_above_its_line():
    text = content(
        decide(request({"nccl_conf_variables": {"NCCL_IB_TC": 106}}), TWO, machine("a100-pcie-2"), "10.1.0.5")
    )
    assert text.splitlines() == [
        HEAD,
        "# Declared in the inventory.",
        "NCCL_IB_TC=106",
        "# Measured: eth1 has the cluster address 10.1.0.5, and NCCL would also take eth0.",
        "NCCL_SOCKET_IFNAME==eth1",
    ]


@pytest.mark.parametrize(
    ("names", "address", "expected"),
    [
        (("eth0=10.0.0.0/24",), "10.0.0.5", ("", [])),
        (("eth0=10.0.0.0/24", "eth1=10.1.0.0/24"), "10.0.0.5", ("eth0", ["eth1"])),
        (("eth0=10.0.0.0/24", "cni0=10.244.0.0/16"), "10.0.0.5", ("eth0", ["cni0"])),
        (("eth0=10.0.0.0/24", "docker0=172.17.0.0/16", "virbr0=192.168.122.0/24"), "10.0.0.5", ("", [])),
        (("eth0=10.0.0.0/24", "ib0=10.1.0.0/24"), "10.0.0.5", ("", [])),
        (("eth0=10.0.0.0/24", "ib0=10.1.0.0/24", "ib1=10.2.0.0/24"), "10.2.0.5", ("ib1", ["ib0"])),
        (("eth0=10.0.0.0/24", "eth0=10.9.0.0/24"), "10.0.0.5", ("", [])),
        (("eth0=10.0.0.0/24", "eth1=10.1.0.0/24"), "10.7.0.5", ("", [])),
        (("eth0=10.0.0.0/24", "eth1=10.1.0.0/24"), "fd00::5", ("", [])),
        (("eth0=10.0.0.0/24", "eth1=10.1.0.0/24"), None, ("", [])),
        ((), "10.0.0.5", ("", [])),
    ],
)
def test_an_interface_is_named_where_nccl_would_take_several(names, address, expected):
    node = NcclNode(interfaces=tuple(Subnet(*one.split("=")) for one in names))
    assert interface_choice(node, address) == expected


def test_what_is_declared_has_the_last_word():
    name = next(name for name in EXPECTED if EXPECTED[name]["rails"])
    assert lines(machine(name), NCCL_IB_HCA=None) == {}
    assert lines(machine(name), NCCL_IB_HCA="=mlx5_9") == {"NCCL_IB_HCA": ("=mlx5_9", "Declared in the inventory")}


def test_there_is_no_file_without_a_line_but_in_place_of_another():
    assert files((), NcclNode()) == []
    (one,) = files((), NcclNode(exists=True, original=True))
    assert one == {"path": "/etc/nccl.conf", "content": f"{HEAD}\n{NOTHING}\n", "mode": "0644"}
