# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host channel adapters on recorded servers."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import rdma
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.rdma_helper import GUIDS, adapter, efa, server


def read(place, *adapters, **more):
    tree(place, {**server(*adapters), **more})
    return rdma.read_adapters(FileTree(str(place / "sys")))


def test_everything_of_an_adapter(tmp_path):
    (found,) = read(tmp_path, adapter(1))
    assert found == {
        "name": "mlx5_1",
        "pci_bus_id": "0000:22:00.0",
        "numa_node": 1,
        "driver": "mlx5_core",
        "firmware": "20.31.1014",
        "board": "MT_0000000223",
        "guid": GUIDS[1],
        "virtual": False,
        "node_type": "CA",
        "p2p": None,
        "ports": [
            {
                "port": 1,
                "link_layer": "InfiniBand",
                "state": "ACTIVE",
                "physical_state": "LinkUp",
                "rate_gbps": 200,
                "netdevs": ["ib1"],
                "rocev2_gid_index": None,
            }
        ],
    }


def test_a_port_without_a_cable(tmp_path):
    (found,) = read(
        tmp_path, adapter(0, "Ethernet", state="1: DOWN", physical="3: Disabled", rate="40 Gb/sec (4X QDR)")
    )
    (port,) = found["ports"]
    assert (port["state"], port["physical_state"], port["netdevs"]) == ("DOWN", "Disabled", ["ens0f0np0"])
    assert port["rocev2_gid_index"] == 1


def test_a_virtual_function(tmp_path):
    home = "/sys/devices/pci0000:10/0000:10:01.0/0000:12:00.0"
    (found,) = read(tmp_path, adapter(0), **{home + "/physfn": ("link", "../0000:12:01.0")})
    assert found["virtual"] is True


@pytest.mark.parametrize(
    ("model", "virtual"), [("0x101b", False), ("0x101c", True), ("0x101e", True), ("0x1021", False)]
)
def test_a_virtual_function_in_a_guest(tmp_path, model, virtual):
    """There is no physical one beside it; its model tells."""
    home = "/sys/devices/pci0000:10/0000:10:01.0/0000:12:00.0"
    (found,) = read(tmp_path, adapter(0, "Ethernet"), **{home + "/device": model + "\n"})
    assert found["virtual"] is virtual


@pytest.mark.parametrize("p2p", ["NVIDIA", "", None])
def test_an_elastic_fabric_adapter(tmp_path, p2p):
    (found,) = read(tmp_path, efa(0, p2p))
    assert [found[key] for key in ("name", "driver", "node_type", "p2p")] == ["efa_0", "efa", "unspecified", p2p]
    (port,) = found["ports"]
    assert (port["link_layer"], port["state"], port["netdevs"], port["rocev2_gid_index"]) == (
        "Unknown",
        "ACTIVE",
        [],
        None,
    )
    assert rdma.interfaces([found], "Ethernet") == []


def test_what_sysfs_does_not_say_is_unknown(tmp_path):
    """An adapter of software, without a device on the bus."""
    tree(tmp_path, {"/sys/class/infiniband/rxe0/ports/1/link_layer": "Ethernet\n"})
    (found,) = rdma.read_adapters(FileTree(str(tmp_path / "sys")))
    assert found["name"] == "rxe0" and found["ports"][0]["physical_state"] is None
    assert [found[key] for key in ("driver", "firmware", "guid", "pci_bus_id")] == [None] * 4


def test_a_machine_without_adapters(tmp_path):
    assert read(tmp_path) == []


@pytest.mark.parametrize(("layer", "names"), [("Ethernet", ["ens1f0np0"]), ("InfiniBand", ["ib0"]), ("none", [])])
def test_interfaces_by_link_layer(tmp_path, layer, names):
    assert rdma.interfaces(read(tmp_path, adapter(0), adapter(1, "Ethernet")), layer) == names


def test_ip_over_infiniband(tmp_path):
    read(tmp_path, adapter(0), adapter(1, "Ethernet"))
    assert rdma.read_ipoib(FileTree(str(tmp_path / "sys"))) == {"ib0": {"mode": "datagram", "mtu": 2044}}


def test_the_recorded_machines(tmp_path):
    """Those that the machine's model is tested with have the same adapters here."""
    machine = machines.dgx_a100()
    recording.write_sysfs(machine, tmp_path)
    found = rdma.read_adapters(FileTree(str(tmp_path)))
    assert [one["name"] for one in found] == [nic.name for nic in machine.nics]
    assert [one["pci_bus_id"] for one in found] == [nic.address for nic in machine.nics]
