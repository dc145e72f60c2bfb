# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node is told when a run starts there, and what is said of it before."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.job import Place
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.launchers.table import LAUNCHERS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.remote import RemoteUnit, with_warnings

ARGS = {
    "run_id": "r1", "environment": "main", "script": "train.py", "args": [], "variables": {}, "nproc_per_node": "auto",
    "max_restarts": 0, "min_nodes": 2, "watch_interval": 0, "user": "trainer", "lease": 60,
}  # fmt: skip
PLACE = Place("gpu-1", ("gpu-1", "gpu-2"), {"gpu-1": "10.0.0.1", "gpu-2": "10.0.0.2"}, 29500)


class Node:
    """Notes what its module is called with."""

    def __init__(self):
        self.calls = []

    def execute(self, arguments, task_vars):
        self.calls.append(arguments)
        return {"warnings": ["no user"]}

    def upload(self, data):
        return "/tmp/archive"


def measured(cpus, count):
    gpus = [
        {"index": number, "pci_bus_id": f"0000:0{number}:00.0", "cpu_affinity": cpus, "numa_node": 0}
        for number in range(count)
    ]
    names = [f"GPU{number}" for number in range(count)]
    topology = {one: {other: "X" if one == other else "SYS" for other in names} for one in names}
    affinity = {name: {"nics": []} for name in names}
    return {"gpus": gpus, "nics": [], "topology": topology, "affinity": affinity}


def unit(node, cpus, count, **args):
    facts = {"ansible_facts": {"gpu_node": measured(cpus, count)}}
    return RemoteUnit(node, {**ARGS, **args}, PLACE, LAUNCHERS["mpirun"], [], facts)


@pytest.mark.parametrize(
    ("cpus", "count", "nproc", "shared"),
    [("0-3", 8, "auto", "8 ranks of gpu-1 share CPU 0,1,2,3"), ("0-2", 4, "4", "2 ranks of gpu-1 share CPU 0,"),
     ("0-3", 4, "auto", None), ("0-3", 8, "2", None), (None, 8, "auto", None)],
)  # fmt: skip
def test_fewer_cpus_than_ranks_are_said(cpus, count, nproc, shared):
    node = Node()
    one = unit(node, cpus, count, nproc_per_node=nproc)
    assert [text[: len(shared or "")] for text in one.warnings] == ([shared] if shared else [])
    assert one.rehearse()["warnings"] == ["gpu-1: no user", *one.warnings]
    assert with_warnings({"changed": True}, one.warnings).get("warnings", []) == one.warnings
    assert with_warnings({"warnings": ["lost"]}, ["few"]) == {"warnings": ["lost", "few"]}


def test_a_node_is_told_how_many_take_part():
    node = Node()
    unit(node, "0-3", 1).start(PLACE, 0)
    assert (node.calls[0]["nodes"], node.calls[0]["address"]) == (2, "10.0.0.1")
