# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What module rdma gets for a node, and why some nodes cannot have it."""

import json
from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.rdma import (
    Adapter,
    Bridging,
    GpuDirect,
    Ipoib,
    Peermem,
    RdmaNode,
    RdmaPort,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma import plan as module
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.plan import (
    Driver,
    escape,
    ets,
    plan,
    problems,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.request import request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe

FABRIC = {"dscp": 26, "priority": 3, "cnp": {"dscp": 48, "priority": 6}}
NODE = RdmaNode(
    (
        Adapter("mlx5_0", "0000:12:00.0", ports=(RdmaPort(1, "Ethernet", netdevs=("ens1f0np0",)),)),
        Adapter("mlx5_1", "0000:22:00.0", ports=(RdmaPort(1, "InfiniBand", netdevs=("ib0",)),)),
        Adapter("mlx5_2", "0000:12:00.1", virtual=True, ports=(RdmaPort(1, "Ethernet", netdevs=("ens1f0v0",)),)),
    ),
    ipoib={"ib0": Ipoib("datagram", 2044)},
    dcb={"ens1f0np0": Bridging(dcbx=("host", "ieee"))},
    dcb_program=True,
    gpudirect=GpuDirect(peermem=Peermem(offered=True)),
)
EMPTY = {"files": [], "values": [], "modules": [], "ports": [], "units": False}


def planned(node=NODE, driver=Driver("open", True), **variables):  # noqa: B008 (frozen)
    return plan(request({f"rdma_{name}": value for name, value in variables.items()}), node, driver)


def refused(node=NODE, **variables):
    return [
        (one.code, one.subject)
        for one in problems(request({f"rdma_{name}": value for name, value in variables.items()}), node)
    ]


def files(found):
    return {one["path"]: one.get("content", one.get("link")) for one in found["files"]}


def test_nothing_is_declared():
    assert planned() == EMPTY


def test_a_node_without_adapters_gets_nothing_and_is_refused_nothing():
    declared = {"roce": FABRIC, "interfaces": ["ens1"], "ipoib": {"ib0": {"mtu": 4092}}, "names": "pci"}
    assert planned(RdmaNode(), **declared) == EMPTY and refused(RdmaNode(), **declared) == []


def test_a_fabric():
    found = planned(roce=FABRIC)
    (port,) = found["ports"]
    assert port == {"interface": "ens1f0np0", "apps": {"26": 3, "48": 6}, "pfc": [3], "ets": None}
    # Either driver's place; the node takes what it has.
    assert [(one["path"], one["value"]) for one in found["values"]] == [
        ("/sys/class/net/ens1f0np0/ecn/roce_np/cnp_dscp", "48"),
        ("/sys/kernel/debug/mlx5/0000:12:00.0/cc_params/np_cnp_dscp", "48"),
        ("/sys/class/net/ens1f0np0/ecn/roce_np/cnp_802p_prio", "6"),
        ("/sys/kernel/debug/mlx5/0000:12:00.0/cc_params/np_cnp_prio", "6"),
    ]
    written = files(found)
    link = "/etc/systemd/system/sys-subsystem-net-devices-ens1f0np0.device.wants/allreduce-rdma@ens1f0np0.service"
    assert written[link] == "/etc/systemd/system/allreduce-rdma@.service" and found["units"]
    assert json.loads(written[module.DECLARATION]) == {
        "interfaces": {"ens1f0np0": {"ports": [port], "values": found["values"]}}
    }


def test_ip_over_infiniband():
    found = planned(ipoib={"ib0": {"mode": "connected", "mtu": 65520}})
    assert found["values"] == [
        {"path": "/sys/class/net/ib0/mode", "value": "connected"},
        {"path": "/sys/class/net/ib0/mtu", "value": "65520"},
    ]
    assert found["ports"] == [] and found["units"]


def test_shares_of_the_link():
    assert ets({0: 50, 3: 50, 6: "strict"}) == {
        "tsa": ["ets", "strict", "strict", "ets", "strict", "strict", "strict", "strict"],
        "bandwidth": [50, 0, 0, 50, 0, 0, 0, 0],
        "classes": [0, 0, 0, 3, 0, 0, 6, 0],
    }


def test_every_named_priority_has_a_class_of_its_own_number():
    assert ets({7: 100, 1: "strict"}) == {
        "tsa": ["strict"] * 7 + ["ets"], "bandwidth": [0] * 7 + [100], "classes": [0, 1, 0, 0, 0, 0, 0, 7],
    }  # fmt: skip
    assert ets({0: "50", 1: 50})["bandwidth"] == [50, 50, 0, 0, 0, 0, 0, 0]


HEAD = "# Written by role allreduce.gpu.rdma; rdma_state: absent puts back what was there before.\n"


def test_the_files_for_peer_memory_are_told_whole():
    found = planned(driver=Driver("proprietary", True))
    assert found["files"] == [
        {"path": "/etc/modules-load.d/allreduce-peermem.conf", "content": f"{HEAD}nvidia-peermem\n", "mode": "0644"},
        {
            "path": "/etc/modprobe.d/allreduce-peermem.conf",
            "content": f"{HEAD}softdep nvidia-peermem pre: ib_core ib_uverbs\nsoftdep nvidia post: nvidia-peermem\n",
            "mode": "0644",
        },
    ]


def test_files_of_everything_together():
    """The rule that names adapters, peer memory, then what the unit applies to each interface."""
    found = planned(driver=Driver("proprietary", True), names="pci", roce=FABRIC, ipoib={"ib0": {"mtu": 4092}})
    unit = "/etc/systemd/system/sys-subsystem-net-devices-%s.device.wants/allreduce-rdma@%s.service"
    assert list(files(found)) == [
        "/etc/udev/rules.d/60-rdma-persistent-naming.rules", "/etc/modules-load.d/allreduce-peermem.conf",
        "/etc/modprobe.d/allreduce-peermem.conf", "/etc/allreduce/rdma.json", *(unit % (name, name) for name in ("ens1f0np0", "ib0")),
    ]  # fmt: skip
    assert {one["mode"] for one in found["files"] if "content" in one} == {"0644"}
    assert [one["interface"] for one in found["ports"]] == ["ens1f0np0"] and found["modules"] == ["nvidia-peermem"]
    assert [one["path"] for one in found["values"]][-1] == "/sys/class/net/ib0/mtu" and len(found["values"]) == 5


@pytest.mark.parametrize(
    ("cnp", "apps", "paths"),
    [
        ({}, {"26": 3}, []),
        ({"dscp": 48}, {"26": 3}, ["cnp_dscp", "np_cnp_dscp"]),
        ({"priority": 6}, {"26": 3}, ["cnp_802p_prio", "np_cnp_prio"]),
        ({"dscp": 0, "priority": 0}, {"26": 3, "0": 0}, ["cnp_dscp", "np_cnp_dscp", "cnp_802p_prio", "np_cnp_prio"]),
    ],
)
def test_congestion_notifications(cnp, apps, paths):
    found = planned(roce={**FABRIC, "cnp": cnp})
    assert found["ports"][0]["apps"] == apps
    assert [one["path"].rpartition("/")[2] for one in found["values"]] == paths


def test_without_a_known_device_only_nvidias_place_is_left():
    node = replace(NODE, adapters=(replace(NODE.adapters[0], pci_bus_id=None),))
    assert [one["path"] for one in planned(node, roce=FABRIC)["values"]] == [
        "/sys/class/net/ens1f0np0/ecn/roce_np/cnp_dscp", "/sys/class/net/ens1f0np0/ecn/roce_np/cnp_802p_prio",
    ]  # fmt: skip


def test_shares_come_with_the_port():
    (one,) = planned(roce={**FABRIC, "ets": {0: 50, 3: 50}})["ports"]
    assert one["ets"] == ets({0: 50, 3: 50})


def test_a_fabric_is_for_the_interfaces_that_are_named():
    both = replace(
        NODE, adapters=(*NODE.adapters, Adapter("mlx5_3", ports=(RdmaPort(1, "Ethernet", netdevs=("ens2", "ens0")),)))
    )
    assert [one["interface"] for one in planned(both, roce=FABRIC)["ports"]] == ["ens0", "ens1f0np0", "ens2"]
    assert [one["interface"] for one in planned(both, roce=FABRIC, interfaces=["ens2"])["ports"]] == ["ens2"]


def test_names():
    guid = "b8ce:f603:0077:8ab4"
    (text,) = files(planned(names="pci", fixed_names={guid.upper(): "compute0"})).values()
    match = 'ACTION=="add", SUBSYSTEM=="infiniband"'
    assert text.splitlines()[1:] == [
        match
        + ', ATTR{node_guid}=="b8ce:f603:0077:8ab4", PROGRAM="rdma_rename %k NAME_FIXED compute0", GOTO="allreduce_named"',
        match + ', PROGRAM="rdma_rename %k NAME_PCI"',
        'LABEL="allreduce_named"',
    ]
    assert "NAME_KERNEL" in files(planned(fixed_names={guid: "compute0"}))[module.NAMES]


@pytest.mark.parametrize(
    ("driver", "offered", "peermem", "expected", "modules"),
    [
        (Driver("proprietary", True), True, "auto", True, ["nvidia-peermem"]),
        (Driver("proprietary", False), True, "auto", True, []),  # softdep and modules-load.d see to it
        (Driver("proprietary", True, "470"), True, "auto", True, ["nvidia-peermem"]),
        (Driver("proprietary", True, "460"), True, "auto", False, []),  # which brings no such module
        (Driver("open", True), True, "auto", False, []),
        (Driver("proprietary", True), False, "auto", False, []),
        (Driver("proprietary", True), None, "auto", False, []),
        (Driver("proprietary", True), True, "never", False, []),
        (Driver(), True, "auto", False, []),
    ],
)
def test_peer_memory_where_it_is_the_only_way(driver, offered, peermem, expected, modules):
    node = replace(NODE, gpudirect=GpuDirect(peermem=Peermem(offered=offered)))
    found = planned(node, driver, peermem=peermem)
    assert (module.LOADED in files(found), module.ORDER in files(found), found["modules"]) == (
        expected,
        expected,
        modules,
    )


@pytest.mark.parametrize(
    ("change", "variables", "expected"),
    [
        ({}, {"roce": FABRIC}, []),
        ({"dcb_program": False}, {"roce": FABRIC}, [("rdma_no_program", "ens1f0np0")]),
        ({"dcb_program": False}, {}, []),
        ({"dcb_agent": True}, {"roce": FABRIC}, [("rdma_foreign_owner", "ens1f0np0")]),
        ({"dcb": {"ens1f0np0": Bridging(dcbx=("ieee",))}}, {"roce": FABRIC}, [("rdma_foreign_owner", "ens1f0np0")]),
        ({"dcb": {"ens1f0np0": Bridging()}}, {"roce": FABRIC}, []),  # unknown is no owner; module rdma asks the port
        ({}, {"roce": FABRIC, "interfaces": ["ens9"]}, [("rdma_lacks_interface", "ens9")]),
        ({}, {"ipoib": {"ib7": {"mtu": 2044}}}, [("rdma_lacks_interface", "ib7")]),
    ],
)
def test_what_cannot_be_done_on_this_node(change, variables, expected):
    assert refused(replace(NODE, **change), **variables) == expected


TWO = (*NODE.adapters, Adapter("mlx5_3", ports=(RdmaPort(1, "Ethernet", netdevs=("ens0",)),)))


@pytest.mark.parametrize(
    ("change", "variables", "sentences"),
    [
        ({"dcb_program": False, "adapters": TWO}, {"roce": FABRIC}, [
            "ens0, ens1f0np0 is declared for RoCE, and this node lacks the program dcb, which sets it; install iproute2 5.11 or later, or leave "
            "rdma_roce empty here.",
        ]),
        ({"dcb_agent": True, "adapters": TWO}, {"roce": FABRIC}, [
            f"The DCB settings of {name} belong to lldpad, which would undo what is declared; stop it, or leave rdma_roce empty here."
            for name in ("ens0", "ens1f0np0")
        ]),
        ({"dcb": {"ens1f0np0": Bridging(dcbx=())}}, {"roce": FABRIC}, [
            "The DCB settings of ens1f0np0 belong to the adapter's firmware, which would undo what is declared; stop it, or leave rdma_roce "
            "empty here.",
        ]),
        ({"adapters": TWO}, {"interfaces": ["ens9", "ens0", "ens8"]}, [
            f"rdma_interfaces has {name}, which this node lacks; choose from ens0, ens1f0np0, or leave it out here." for name in ("ens9", "ens8")
        ]),
        ({"ipoib": {}}, {"ipoib": {"ib7": {"mtu": 2044}}}, [
            "rdma_ipoib has ib7, which this node lacks; choose from none, or leave it out here.",
        ]),
        ({"dcb_agent": True}, {}, []),
    ],
)  # fmt: skip
def test_each_reason_is_one_sentence(change, variables, sentences):
    wanted = request({f"rdma_{name}": value for name, value in variables.items()})
    assert [describe(one) for one in problems(wanted, replace(NODE, **change))] == sentences


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("ens1f0np0", "ens1f0np0"),
        ("br-ib0", "br\\x2dib0"),
        (".x", "\\x2ex"),
        ("ib0.8001", "ib0.8001"),
        ("A_z:9", "A_z:9"),
        ("wlü", "wl\\xc3\\xbc"),
    ],
)
def test_names_of_units(name, escaped):
    """As systemd-escape prints them."""
    assert escape(name) == escaped
