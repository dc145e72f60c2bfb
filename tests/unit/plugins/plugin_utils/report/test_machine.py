# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.gpu_node import GpuNode
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.health import Judgement
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError, parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import health, machine
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.machine import Device, Fault, Group, Link
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.picture import draw
from ansible_collections.allreduce.gpu.tests.report import simulated


def build(gpu_node, faults):
    return machine.build(parse(GpuNode, gpu_node), faults)


def built(name):
    found = simulated.measured(name)
    return build(found["gpu_node"], health.faults(parse(Judgement, found["gpu_health"])))


def outline(item):
    """Codes and names, nested as the picture nests them."""
    return item.name if isinstance(item, Device) else (item.code, [outline(one) for one in item.members])


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("dgx", ("NUMA", [("PXB", ["GPU0", "GPU1", "mlx5_0", "mlx5_1"])])),
        ("a40", ("NUMA", [("PHB", ["GPU0", "mlx5_0"]), "GPU1"])),
        ("cube", ("NUMA", [("PHB", [("PIX", ["GPU0", "GPU1", "mlx5_0"]), ("PIX", ["GPU2", "GPU3", "mlx5_1"])])])),
        ("workstation", ("NUMA", ["GPU0", "GPU1"])),
        ("mig", ("NUMA", ["GPU0"])),
    ],
)
def test_what_is_near_is_in_one_group(name, first):
    assert outline(built(name).groups[0]) == first


def test_numa_nodes_stand_in_the_order_of_their_gpus():
    groups = built("dgx").groups
    assert [(group.label, group.note) for group in groups] == [
        ("NUMA node 3", "CPUs 48-63,176-191"),
        ("NUMA node 1", "CPUs 16-31,144-159"),
        ("NUMA node 7", "CPUs 112-127,240-255"),
        ("NUMA node 5", "CPUs 80-95,208-223"),
    ]


def test_links_of_a_switched_and_of_a_direct_machine():
    dgx, a40 = built("dgx"), built("a40")
    assert (dgx.switches, dgx.fabric, dgx.links) == (6, True, ())
    assert {device.links for group in dgx.groups for device in machine.devices(group) if device.kind == "gpu"} == {12}
    assert (a40.fabric, a40.links) == (False, (Link("GPU0", "GPU1", 4),))
    assert len(built("cube").links) == 16


def test_islands_and_codes():
    assert built("a40").islands == (("GPU0", "GPU1"),)
    assert list(built("a40").codes) == ["PHB", "NODE", "SYS"]
    assert built("mig").islands == ()


def test_the_matrix_is_that_of_gpu_node():
    found, node = built("cube"), simulated.measured("cube")["gpu_node"]
    assert found.matrix == tuple(tuple(node["topology"][one][two] for two in found.names) for one in found.names)


def test_what_is_wrong_is_said_at_its_device():
    faulty = {one.name: one for group in built("broken").groups for one in machine.devices(group) if one.fault}
    assert {name: one.fault for name, one in faulty.items()} == {
        "GPU1": "PCIe x8 of x16",
        "0000:45:00.0": "does not answer",
        "GPU4": "NVLinks down",
        "GPU6": "2 ECC errors",
    }
    assert faulty["GPU4"].faulty_links == "10/12"
    assert faulty["GPU1"].details == ("A100-SXM4-80GB",)


@pytest.mark.parametrize(
    ("ports", "details", "fault"),
    [
        ([("ACTIVE", "InfiniBand", 200)], ("InfiniBand", "200 Gb/s"), ""),
        ([("DOWN", "Ethernet", 25)], ("Ethernet", "25 Gb/s"), "down"),
        ([("ACTIVE", "InfiniBand", 2.5)], ("InfiniBand", "2.5 Gb/s"), ""),
        ([("ACTIVE", None, None)], (), ""),
        ([("ACTIVE", "Ethernet", 25), ("DOWN", "Ethernet", 25)], ("Ethernet 25 Gb/s", "Ethernet 25 Gb/s, down"), ""),
        ([("DOWN", "Ethernet", 25)] * 2, ("Ethernet 25 Gb/s",) * 2, "all ports down"),
        ([], (), ""),
    ],
)
def test_adapters_have_state_and_rate(ports, details, fault):
    node = {
        "gpus": [{"pci_bus_id": "0000:07:00.0", "index": 0}],
        "nics": [
            {"name": "ibp14s0", "ports": [{"state": s, "link_layer": layer, "rate_gbps": r} for s, layer, r in ports]}
        ],
    }
    nic = build(node, {}).groups[0].members[1]
    assert (nic.title, nic.details, nic.fault) == ("ibp14s0", details, fault)


def test_the_picture_in_words():
    assert built("broken").words.endswith("6 NVSwitches join the GPUs with 10 or 12 NVLinks each.")
    assert built("workstation").words == "NUMA node 0: GPU0, GPU1. GPU0 and GPU1: 4 NVLinks."


def test_without_gpus_there_is_no_machine():
    assert build({}, {}) is None
    assert build({"gpus": None, "topology": None}, {}) is None
    assert build({"gpus": [{"name": "NVIDIA A40"}]}, {}) is None


def test_a_machine_of_which_little_is_known():
    found = build({"gpus": [{"pci_bus_id": "0000:07:00.0"}, {"pci_bus_id": "0000:08:00.0", "index": 0}]}, {})
    assert found.names == ("0000:07:00.0", "GPU0")
    assert found.matrix == (("?", "?"), ("?", "?"))
    assert isinstance(found.groups[0], Group)
    assert found.groups[0].label == "NUMA node not known"


@pytest.mark.parametrize(("check", "details"), [("pcie_width", ("A40",)), ("ecc_errors", ("A40", "PCIe x8 of x16"))])
def test_lanes_are_told_once(check, details):
    """Where the fault in the picture is the narrow link itself, whatever its words are."""
    gpu = {"index": 0, "pci_bus_id": "0000:07:00.0", "name": "NVIDIA A40", "pcie": {"width": 8, "max_width": 16}}
    found = build({"gpus": [{**gpu, "seen_by": ["pci", "nvml"]}]}, {"GPU0": Fault(check, "some words")})
    (device,) = found.groups[0].members
    assert (device.details, device.fault) == (details, "some words")


def test_a_gpu_that_a_node_says_twice_has_no_arc_to_itself():
    link = {"link": 0, "active": True, "remote_type": "gpu", "remote_pci_bus_id": "0000:17:00.0"}
    one = {"index": 0, "pci_bus_id": "0000:17:00.0", "seen_by": ["nvml"], "nvlinks": [link]}
    found = build({"gpus": [one, one]}, {})
    assert found.links == ()
    assert draw(found, 341, stacked=True)


@pytest.mark.parametrize(
    "said",
    [{"nvswitches": {"count": 10**15}}, {"nvswitches": {"count": -1}}, {"gpus": [{}] * 2000}, {"nics": [{}] * 2000}],
)
def test_more_devices_than_a_machine_has_are_refused(said):
    """The picture has a box for each, and the matrix a row and a column."""
    with pytest.raises(DocumentError, match="a machine of at most"):
        parse(GpuNode, said)
