# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What single files of /sys mean; whole machines are in test_gpu_node.py."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.sysfs import (
    _numa,
    _rocev2_gid_index,
    read_vendors,
    read_without_rdma,
)

IPV4 = "0000:0000:0000:0000:0000:ffff:0a00:0001"
ROUTABLE = "2001:0db8:0000:0000:0000:0000:0000:0001"
LINK_LOCAL = "fe80:0000:0000:0000:0e42:a1ff:fe00:0001"
EMPTY = "0000:0000:0000:0000:0000:0000:0000:0000"


@pytest.mark.parametrize(
    ("nodes", "number", "found"),
    [([0], -1, 0), ([0, 1], -1, None), ([], -1, None), ([0, 1], 1, 1), ([0], None, None)],
)
def test_a_device_without_a_numa_node_is_on_the_only_one(tmp_path, nodes, number, found):
    for node in nodes:
        (tmp_path / "devices" / "system" / "node" / f"node{node}").mkdir(parents=True)
    assert _numa(FileTree(str(tmp_path)), number) == found


@pytest.mark.parametrize(
    ("gids", "index"),
    [
        ([("RoCE v2", LINK_LOCAL)], None),
        ([("RoCE v2", EMPTY)], None),
        ([("IB/RoCE v1", IPV4), ("RoCE v2", IPV4)], 1),
        ([("RoCE v2", LINK_LOCAL), ("RoCE v2", ROUTABLE)], 1),
        ([("RoCE v2", ROUTABLE), ("RoCE v2", IPV4)], 1),
        ([("RoCE v2", IPV4), ("RoCE v2", IPV4)], 0),
    ],
)
def test_the_gid_that_is_routed(tmp_path, gids, index):
    for folder in ("gids", "gid_attrs/types"):
        (tmp_path / "port" / folder).mkdir(parents=True)
    for number, (kind, gid) in enumerate(gids):
        (tmp_path / "port" / "gids" / str(number)).write_text(gid + "\n")
        (tmp_path / "port" / "gid_attrs" / "types" / str(number)).write_text(kind + "\n")
    assert _rocev2_gid_index(FileTree(str(tmp_path)), "/port") == index


INFINIBAND, ETHERNET = "0x020700", "0x020000"
MELLANOX, BROADCOM, AMAZON = "0x15b3", "0x14e4", "0x1d0f"


def adapter(pci_class=ETHERNET, vendor=MELLANOX, device="0x1021", driver="mlx5_core", virtual=False):
    return {"class": pci_class, "vendor": vendor, "device": device, "driver": driver, "virtual": virtual}


def nic(address, device="0x1021"):
    return {"name": "mlx5_0", "pci_bus_id": address, "pci_device_id": device}


@pytest.mark.parametrize(
    ("devices", "nics", "found"),
    [
        # InfiniBand always has one; Ethernet where another of the model has.
        ({"0000:41:00.0": adapter(INFINIBAND)}, [], ["0000:41:00.0"]),
        ({"0000:41:00.0": adapter(INFINIBAND, driver=None)}, [], ["0000:41:00.0"]),
        ({"0000:41:00.0": adapter()}, [], []),
        ({"0000:41:00.0": adapter(), "0000:61:00.0": adapter()}, [nic("0000:61:00.0")], ["0000:41:00.0"]),
        ({"0000:41:00.0": adapter(device="0x1015"), "0000:61:00.0": adapter()}, [nic("0000:61:00.0")], []),
        ({"0000:41:00.0": adapter(vendor=BROADCOM), "0000:61:00.0": adapter(vendor=BROADCOM)}, [nic("0000:61:00.0")], ["0000:41:00.0"]),
        ({"0000:41:00.0": adapter(vendor=BROADCOM), "0000:61:00.0": adapter()}, [nic("0000:61:00.0")], []),
        ({"0000:41:00.0": adapter(INFINIBAND)}, [nic("0000:41:00.0")], []),
        # Both functions of a card share a device (RoCE LAG), a guest has others, and a bridge is none.
        ({"0000:41:00.0": adapter(), "0000:41:00.1": adapter()}, [nic("0000:41:00.0")], []),
        ({"0000:41:00.2": adapter(INFINIBAND, virtual=True)}, [], []),
        ({"0000:41:00.0": adapter(INFINIBAND, driver="vfio-pci")}, [], []),
        ({"0000:41:00.0": adapter("0x060400")}, [nic("0000:61:00.0")], []),
        # EFA is for nothing else; ENA beside it has none.
        ({"0000:00:1e.0": adapter(vendor=AMAZON, device="0xefa2", driver=None)}, [], ["0000:00:1e.0"]),
        ({"0000:00:1e.0": adapter(vendor=AMAZON, device="0xefa2", driver="efa")}, [nic("0000:00:1e.0", "0xefa2")], []),
        ({"0000:00:05.0": adapter(vendor=AMAZON, device="0xec20", driver="ena")}, [nic("0000:00:1e.0", "0xefa2")], []),
    ],
)  # fmt: skip
def test_adapters_without_an_rdma_device(tmp_path, devices, nics, found):
    for address, what in devices.items():
        place = tmp_path / "bus" / "pci" / "devices" / address
        place.mkdir(parents=True)
        for name in ("class", "vendor", "device"):
            (place / name).write_text(what[name] + "\n")
        if what["driver"]:
            (place / "driver").symlink_to("../../../bus/pci/drivers/" + what["driver"])
        if what["virtual"]:
            (place / "physfn").symlink_to("../0000:41:00.0")
    tree = FileTree(str(tmp_path))
    told = read_without_rdma(tree, nics, read_vendors(tree))
    assert told == [{"pci_bus_id": address, "driver": devices[address]["driver"]} for address in found]
