# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL's topology file, read back as NCCL reads it: every GPU, NIC and link is there, as far away as it was measured."""

import re
from collections import Counter
from xml.etree import ElementTree

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.topology import gpu_label
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology import nccl_xml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology.recorded import recorded_node
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines


def places(text: str) -> dict[str, list]:
    """{PCI address: the elements above it, from the CPU on} of the devices that are not bridges."""
    found = {}

    def walk(element, above):
        if element.tag == "pci" and element.get("class") != nccl_xml.BRIDGE:
            found[element.get("busid")] = above
        for child in element:
            walk(child, [*above, element])

    for cpu in ElementTree.fromstring(text):
        walk(cpu, [])
    return found


def distance(one: list, two: list) -> str:
    """As NCCL counts (src/graph/paths.cc): a bridge between them, several, a CPU, several."""
    if one[0] is not two[0]:
        return "SYS"
    if one[-1] is two[-1] and len(one) > 1:
        return "PIX"
    return "PXB" if len(one) > 1 and len(two) > 1 and one[1] is two[1] else "PHB"


@pytest.mark.parametrize("machine", machines.MACHINES, ids=lambda machine: machine.__name__)
def test_all_devices_at_their_distances(measure, machine):
    node = measure(machine())
    place = places(nccl_xml.nccl_topology_xml(node))
    address = {gpu_label(gpu): gpu["pci_bus_id"] for gpu in node["gpus"]} | {
        nic["name"]: nic["pci_bus_id"] for nic in node["nics"]
    }
    assert sorted(place) == sorted(address.values())
    for one, row in node["topology"].items():
        for two, code in row.items():
            if code in ("PIX", "PXB", "PHB", "NODE", "SYS"):
                # NCCL knows no difference between host bridges of one CPU.
                assert distance(place[address[one]], place[address[two]]) == code.replace("NODE", "PHB"), (one, two)


@pytest.mark.parametrize("machine", machines.MACHINES, ids=lambda machine: machine.__name__)
def test_all_links_and_ports(measure, machine):
    node = measure(machine())
    system = ElementTree.fromstring(nccl_xml.nccl_topology_xml(node))
    written = {
        pci.get("busid"): sum(int(link.get("count")) for link in pci.iter("nvlink"))
        for pci in system.iter("pci")
        if pci.find("gpu") is not None
    }
    assert written == {gpu["pci_bus_id"]: sum(link["active"] for link in gpu["nvlinks"]) for gpu in node["gpus"]}
    assert [(net.get("name"), net.get("port")) for net in system.iter("net")] == [
        (nic["name"], str(port["port"])) for nic in sorted_as_written(node, system) for port in nic["ports"]
    ]


def sorted_as_written(node: dict, system) -> list[dict]:
    order = [pci.get("busid") for pci in system.iter("pci")]
    return sorted(node["nics"], key=lambda nic: order.index(nic["pci_bus_id"]))


def test_a_file_in_full(measure):
    assert (
        nccl_xml.nccl_topology_xml(measure(machines.a30_pairs()))
        == """\
<system version="1">
  <cpu numaid="0" affinity="000000ff,ffff0000,00ffffff">
    <pci busid="0000:31:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="80">
        <nvlink target="0000:32:00.0" count="4" tclass="0x030200"/>
      </gpu>
    </pci>
    <pci busid="0000:32:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="80">
        <nvlink target="0000:31:00.0" count="4" tclass="0x030200"/>
      </gpu>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ffffff00,0000ffff,ff000000">
    <pci busid="ffff:00:00.0" class="0x060400">
      <pci busid="ffff:00:01.0" class="0x060400">
        <pci busid="0000:b3:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
          <gpu dev="2" sm="80">
            <nvlink target="0000:b6:00.0" count="4" tclass="0x030200"/>
          </gpu>
        </pci>
      </pci>
      <pci busid="ffff:00:02.0" class="0x060400">
        <pci busid="0000:b6:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
          <gpu dev="3" sm="80">
            <nvlink target="0000:b3:00.0" count="4" tclass="0x030200"/>
          </gpu>
        </pci>
        <pci busid="0000:b7:00.0" class="0x020700">
          <nic>
            <net name="mlx5_0" port="1" speed="100000"/>
          </nic>
        </pci>
      </pci>
    </pci>
  </cpu>
</system>
"""
    )


def test_switches_are_targets_of_their_links(measure):
    gpu = next(ElementTree.fromstring(nccl_xml.nccl_topology_xml(measure(machines.dgx_a100()))).iter("gpu"))
    assert Counter(link.get("tclass") for link in gpu) == {nccl_xml.NVSWITCH: 6}
    assert {link.get("count") for link in gpu} == {"2"}


def test_switches_of_a_rack_have_no_address_here(measure):
    gpu = next(ElementTree.fromstring(nccl_xml.nccl_topology_xml(measure(machines.gb200_tray()))).iter("gpu"))
    assert [(link.get("target"), link.get("count")) for link in gpu] == [(nccl_xml.HIDDEN_NVSWITCH, "18")]


def test_a_hidden_gpu_is_a_device_without_rank(measure):
    text = nccl_xml.nccl_topology_xml(measure(machines.a40_pcie().change(1, hidden=True)))
    assert re.search(r'<pci busid="0000:31:00.0" [^>]*/>', text)
    assert re.findall(r'<gpu dev="(\d)"', text) == ["0", "1", "2"]


def test_a_node_whose_places_nobody_knows(measure):
    text = nccl_xml.nccl_topology_xml(measure(machines.a40_pcie().without_driver()))
    assert "<gpu" not in text
    assert len(places(text)) == 5


def test_a_recording_has_no_addresses():
    with pytest.raises(ValueError, match="PCI address of GPU0, GPU1 is not known"):
        nccl_xml.nccl_topology_xml(recorded_node("GPU0 GPU1 CPU Affinity\nGPU0 X NV4 0-3\nGPU1 NV4 X 0-3\n"))


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [("0", "00000001"), ("0-31", "ffffffff"), ("32", "00000001,00000000"), ("0-3,36", "00000010,0000000f")],
)
def test_masks_of_cpus(cpus, mask):
    assert nccl_xml.cpu_mask(cpus) == mask


def device_less(measure, **changes):
    """A measured node whose devices have these values."""
    node = measure(machines.a30_pairs())
    for device in [*node["gpus"], *node["nics"]]:
        device.update({key: value for key, value in changes.items() if key in device})
    return node


def test_devices_whose_numa_node_is_not_known_are_at_minus_one(measure):
    system = ElementTree.fromstring(nccl_xml.nccl_topology_xml(device_less(measure, numa_node=None)))
    assert [cpu.get("numaid") for cpu in system] == ["-1"]


def test_a_cpu_whose_affinity_is_not_known_has_none(measure):
    system = ElementTree.fromstring(nccl_xml.nccl_topology_xml(device_less(measure, cpu_affinity=None)))
    assert {cpu.get("affinity") for cpu in system} == {None}


@pytest.mark.parametrize(
    "pcie",
    [{"max_generation": 4, "width": None}, {"max_generation": None, "width": 16}, {"max_generation": 7, "width": 16}],
)
def test_a_pcie_link_is_written_only_in_full(measure, pcie):
    system = ElementTree.fromstring(nccl_xml.nccl_topology_xml(device_less(measure, pcie=pcie)))
    found = [
        pci.attrib.keys() & {"link_speed", "link_width"} for pci in system.iter("pci") if pci.find("gpu") is not None
    ]
    assert found
    assert not any(found)


def test_a_link_that_is_down_is_left_out(measure):
    node = measure(machines.a30_pairs())
    for gpu in node["gpus"]:
        for link in gpu["nvlinks"]:
            link["active"] = False
    assert "nvlink" not in nccl_xml.nccl_topology_xml(node)


@pytest.mark.parametrize(
    ("ports", "kind"),
    [([], "0x020000"), ([{"port": 1, "link_layer": None, "rate_gbps": None}], "0x020000"),
     ([{"port": 1, "link_layer": "InfiniBand", "rate_gbps": 200}], "0x020700")],
)  # fmt: skip
def test_an_adapter_is_ethernet_unless_its_port_says_otherwise(measure, ports, kind):
    system = ElementTree.fromstring(nccl_xml.nccl_topology_xml(device_less(measure, ports=ports)))
    found = {pci.get("class") for pci in system.iter("pci") if pci.find("nic") is not None}
    assert found == {kind}


def test_bridges_have_addresses_of_their_own():
    """Sixty-six of them need a second and a third bus."""
    names = [f"GPU{index}" for index in range(132)]
    pair = {name: names[index ^ 1] for index, name in enumerate(names)}
    gpus = [
        {
            "index": index, "pci_bus_id": f"0000:{index:02x}:00.0", "numa_node": 0, "cpu_affinity": "0-15", "nvlinks": [],
            "pcie": {"max_generation": 4, "width": 16}, "compute_capability": "8.0",
        }
        for index in range(len(names))
    ]  # fmt: skip
    topology = {one: {two: "PIX" if pair[one] == two else "SYS" for two in names} for one in names}
    system = ElementTree.fromstring(nccl_xml.nccl_topology_xml({"gpus": gpus, "nics": [], "topology": topology}))
    bridges = [pci.get("busid") for pci in system.iter("pci") if pci.get("class") == nccl_xml.BRIDGE]
    assert bridges == [f"ffff:{bus:02x}:{device:02x}.0" for bus in range(3) for device in range(32)][:66]
