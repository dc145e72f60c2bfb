# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node has of RDMA beside what is declared."""

from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.drift import checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.rdma import (
    Adapter,
    Answer,
    Bridging,
    Buffers,
    Cuda,
    Ets,
    GpuDirect,
    Ipoib,
    Peermem,
    RdmaNode,
    RdmaPort,
    TrafficClass,
    Verbs,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.compare import compare_rdma
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.request import request

NAME = "ens1f0np0"
GUID = "b8ce:f603:0077:8ab4"
FABRIC = {"dscp": 26, "priority": 3, "ets": {0: 50, 3: 50, 6: "strict"}, "cnp": {"dscp": 48, "priority": 6}}
# Classes that no priority is in are shown as each driver likes.
SHOWN = Ets(
    ("ets", "vendor", "vendor", "ets", "vendor", "vendor", "strict", "vendor"),
    (50, 100, 100, 50, 9, 9, 100, 9),
    (0, 0, 0, 3, 0, 0, 6, 0),
)
GOOD = Bridging({"26": 3, "48": 6}, 0, (3,), SHOWN, Buffers((0, 0, 0, 1, 0, 0, 0, 0), (9, 9, 0, 0, 0, 0, 0, 0)))
NODE = RdmaNode(
    (
        Adapter(
            "mlx5_0",
            "0000:12:00.0",
            0,
            "mlx5_core",
            guid=GUID,
            ports=(RdmaPort(1, "Ethernet", "ACTIVE", "LinkUp", 200, (NAME,)),),
        ),
    ),
    ipoib={"ib0": Ipoib("connected", 65520)},
    dcb={NAME: GOOD},
    traffic_class=TrafficClass("106"),
    gpudirect=GpuDirect(
        Verbs("ok", {"mlx5_0": Answer("supported", 9)}),
        Cuda("ok", None, 12040, {"0000:07:00.0": True}),
        Peermem(None, {}, False),
    ),
)


def compared(node=NODE, has_gpus=True, **variables):
    wanted = request({f"rdma_{name}": value for name, value in variables.items()})
    return {one.subject: one for one in compare_rdma(wanted, node, [], has_gpus)}


def differing(*arguments, **variables):
    return {
        subject: (one.status, one.remedy) for subject, one in compared(*arguments, **variables).items() if one.differs
    }


def port(**change):
    return replace(NODE, dcb={NAME: replace(GOOD, **change)})


def test_everything_as_declared():
    found = compared(roce=FABRIC, ipoib={"ib0": {"mode": "connected", "mtu": 65520}}, fixed_names={GUID: "mlx5_0"})
    assert {one.kind for one in found.values()} == {"link", "gpudirect", "name", "ipoib", "fabric", "chain"}
    assert [one for one in found.values() if one.differs] == []


def test_without_a_declaration_nobody_asks_for_a_fabric():
    assert set(compared(port(apps={}, pfc=()))) == {"adapters", "mlx5_0 to 0000:07:00.0"}


@pytest.mark.parametrize(
    ("change", "subjects"),
    [
        ({"apps": {"26": 4, "48": 6}}, {f"{NAME} DSCP 26", f"mlx5_0 at {NAME}"}),
        ({"apps": {"26": 3}}, {f"{NAME} DSCP 48"}),
        ({"apps": None}, {f"{NAME} DSCP 26", f"{NAME} DSCP 48", f"mlx5_0 at {NAME}"}),
        ({"pfc": ()}, {f"{NAME} PFC", f"mlx5_0 at {NAME}"}),
        ({"pfc": (3, 4)}, {f"{NAME} PFC"}),
        ({"ets": replace(SHOWN, bandwidth=(60, 100, 100, 40, 9, 9, 100, 9))}, {f"{NAME} ETS"}),
        ({"buffers": Buffers((0,) * 8, (9,) * 8)}, {f"mlx5_0 at {NAME}"}),
    ],
)
def test_a_port_that_is_not_as_declared(change, subjects):
    assert set(differing(port(**change), roce=FABRIC)) == subjects


def test_the_chain_says_where_it_breaks():
    found = compared(replace(NODE, traffic_class=TrafficClass()), roce=FABRIC)[f"mlx5_0 at {NAME}"]
    assert found.status is Status.DIFFERS and "nothing sets NCCL_IB_TC" in found.observed
    assert not compared(replace(NODE, traffic_class=TrafficClass()), roce=FABRIC, traffic_class="104")[
        f"mlx5_0 at {NAME}"
    ].differs


@pytest.mark.parametrize(
    ("answer", "status", "remedy"),
    [
        ("supported", Status.AS_PLANNED, Remedy.NONE),
        ("unsupported", Status.DIFFERS, Remedy.LIBRARY),
        ("crashed", Status.UNKNOWN, Remedy.MEASURE),
    ],
)
def test_how_adapters_reach_the_gpus(answer, status, remedy):
    direct = replace(NODE.gpudirect, verbs=Verbs("ok", {"mlx5_0": Answer(answer, 95)}))
    found = compared(replace(NODE, gpudirect=direct))["mlx5_0 to 0000:07:00.0"]
    assert (found.status, found.remedy) == (status, remedy)


def test_the_driver_of_the_adapter_is_a_way():
    efa = replace(NODE.adapters[0], driver="efa", p2p="NVIDIA")
    direct = replace(NODE.gpudirect, cuda=Cuda("ok", None, 12040, {"0000:07:00.0": False}))
    assert not compared(replace(NODE, adapters=(efa,), gpudirect=direct))["mlx5_0 to 0000:07:00.0"].differs


def test_nobody_asks_where_it_is_not_wanted_or_there_are_no_gpus():
    assert set(compared(gpudirect=False)) == set(compared(has_gpus=False)) == {"adapters"}


def test_cables_names_and_ip_over_infiniband():
    down = replace(NODE.adapters[0], ports=(RdmaPort(1, "InfiniBand", "DOWN", "Polling"),))
    assert differing(replace(NODE, adapters=(down,)), gpudirect=False) == {"adapters": (Status.DIFFERS, Remedy.LIBRARY)}
    assert differing(fixed_names={GUID: "compute0"}) == {GUID: (Status.DIFFERS, Remedy.BOOT)}
    wanted = {"ib0": {"mode": "datagram", "mtu": 65520}, "ib1": {"mtu": 2044}}
    assert differing(ipoib=wanted) == {
        "mode of ib0": (Status.DIFFERS, Remedy.APPLY), "mtu of ib1": (Status.MISSING, Remedy.APPLY),
    }  # fmt: skip


def test_checks_name_what_failed():
    wanted = request({"rdma_roce": FABRIC})
    found = {one["name"]: one for one in checks(compare_rdma(wanted, port(pfc=()), [], True))}
    assert {name: one["status"] for name, one in found.items()} == {
        "rdma_link": "passed", "rdma_gpudirect": "passed", "rdma_fabric": "failed", "rdma_chain": "failed",
    }  # fmt: skip
    assert f"{NAME} PFC is none instead of 3" in found["rdma_fabric"]["reason"]
    assert found["rdma_fabric"]["fix"] == "run site again"


AS_PLANNED = (Status.AS_PLANNED, Remedy.NONE)
ETS = "0: 0 50 %, 1: 0 50 %, 2: 0 50 %, 3: 3 50 %, 4: 0 50 %, 5: 0 50 %, 6: 6 strict, 7: 0 50 %"
PORTS = (RdmaPort(1, "InfiniBand", "INIT", "LinkUp"), RdmaPort(2, "InfiniBand", None, None))
APPLY = (Status.DIFFERS, Remedy.APPLY)


@pytest.mark.parametrize(
    ("node", "variables", "whole"),
    [
        (NODE, {}, ("adapters", "an active port", "mlx5_0/1 ACTIVE (LinkUp)", *AS_PLANNED, "link")),
        (replace(NODE, adapters=(Adapter("mlx5_0", ports=PORTS),)), {}, (
            "adapters", "an active port", "mlx5_0/1 INIT (LinkUp), mlx5_0/2 unknown (unknown)", Status.DIFFERS, Remedy.LIBRARY, "link",
        )),
        (replace(NODE, adapters=(Adapter("mlx5_0"),)), {}, (
            "adapters", "an active port", "no port", Status.DIFFERS, Remedy.LIBRARY, "link",
        )),
        (NODE, {}, ("mlx5_0 to 0000:07:00.0", "dma-buf or peermem", "dma-buf", *AS_PLANNED, "gpudirect")),
        (replace(NODE, gpudirect=replace(NODE.gpudirect, cuda=Cuda("ok", None, 12040, {"b": True, "a": True}))), {}, (
            "mlx5_0 to a, b", "dma-buf or peermem", "dma-buf", *AS_PLANNED, "gpudirect",
        )),
        (replace(NODE, gpudirect=None), {}, (
            "mlx5_0", "dma-buf or peermem", "unknown (mlx5_0 was not asked. The GPUs were not asked for DMA buffers.)",
            Status.UNKNOWN, Remedy.MEASURE, "gpudirect",
        )),
        (NODE, {"fixed_names": {GUID.upper(): "mlx5_0"}}, (GUID, "mlx5_0", "mlx5_0", *AS_PLANNED, "name")),
        (NODE, {"fixed_names": {GUID: "compute0"}}, (GUID, "compute0", "mlx5_0", Status.DIFFERS, Remedy.BOOT, "name")),
        (NODE, {"ipoib": {"ib0": {"mode": "connected"}}}, ("mode of ib0", "connected", "connected", *AS_PLANNED, "ipoib")),
        (NODE, {"ipoib": {"ib0": {"mtu": "4092"}}}, ("mtu of ib0", "4092", "65520", *APPLY, "ipoib")),
        (NODE, {"ipoib": {"ib1": {"mtu": 4092}}}, ("mtu of ib1", "4092", "", Status.MISSING, Remedy.APPLY, "ipoib")),
        (NODE, {"roce": FABRIC}, (f"{NAME} DSCP 26", "priority 3", "priority 3", *AS_PLANNED, "fabric")),
        (port(apps={"26": 4}), {"roce": FABRIC}, (f"{NAME} DSCP 26", "priority 3", "priority 4", *APPLY, "fabric")),
        (port(apps={"26": 4}), {"roce": FABRIC}, (f"{NAME} DSCP 48", "priority 6", "", Status.MISSING, Remedy.APPLY, "fabric")),
        (NODE, {"roce": FABRIC}, (f"{NAME} PFC", "3", "3", *AS_PLANNED, "fabric")),
        (port(pfc=()), {"roce": FABRIC}, (f"{NAME} PFC", "3", "none", *APPLY, "fabric")),
        (port(pfc=(3, 4)), {"roce": FABRIC}, (f"{NAME} PFC", "3", "3 4", *APPLY, "fabric")),
        (port(pfc=None), {"roce": FABRIC}, (f"{NAME} PFC", "3", "", Status.MISSING, Remedy.APPLY, "fabric")),
        (NODE, {"roce": FABRIC}, (f"{NAME} ETS", ETS, ETS, *AS_PLANNED, "fabric")),
        (port(ets=None), {"roce": FABRIC}, (f"{NAME} ETS", ETS, "", Status.MISSING, Remedy.APPLY, "fabric")),
        (port(ets=replace(SHOWN, tsa=("ets",) * 8)), {"roce": FABRIC}, (
            f"{NAME} ETS", ETS, ETS.replace("6 strict", "6 100 %"), *APPLY, "fabric",
        )),
        (NODE, {"roce": FABRIC}, (
            f"mlx5_0 at {NAME}", "lossless",
            f"mlx5_0 at {NAME}: NCCL uses class 106, which is DSCP 26, priority 3, lossless, traffic class 3 with 50 %.", *AS_PLANNED, "chain",
        )),
        (port(pfc=()), {"roce": FABRIC}, (
            f"mlx5_0 at {NAME}", "lossless", f"mlx5_0 at {NAME}: NCCL uses class 106, which is DSCP 26 and priority 3, which has no flow "
            "control (PFC is on for: ), so it is lossy.", Status.DIFFERS, Remedy.LIBRARY, "chain",
        )),
    ],
)  # fmt: skip
def test_a_comparison_is_told_whole(node, variables, whole):
    assert compared(node, **variables)[whole[0]] == Comparison("rdma", *whole)


def test_only_the_interfaces_of_the_fabric_are_asked_for_a_way_without_losses():
    second = Adapter("mlx5_1", ports=(RdmaPort(1, "Ethernet", "ACTIVE", netdevs=("ens2",)),))
    node = replace(NODE, adapters=(second, *NODE.adapters))
    found = [one.subject for one in compared(node, roce=FABRIC, interfaces=[NAME]).values() if one.kind == "chain"]
    assert found == [f"mlx5_0 at {NAME}"]
    assert len([one for one in compared(node, roce=FABRIC).values() if one.kind == "chain"]) == 2


def test_an_interface_that_shows_nothing_has_nothing_of_the_fabric():
    found = [one for one in compared(replace(NODE, dcb={}), roce=FABRIC).values() if one.kind == "fabric"]
    assert [one.status for one in found] == [Status.MISSING] * 4


def test_shares_that_nobody_declared_are_not_compared():
    found = compared(port(ets=None), roce={"dscp": 26, "priority": 3})
    assert f"{NAME} ETS" not in found and f"{NAME} DSCP 26" in found


def test_adapters_without_a_declared_name_are_not_compared():
    other = replace(NODE.adapters[0], name="mlx5_9", guid=None)
    assert [
        one.subject
        for one in compared(replace(NODE, adapters=(other, *NODE.adapters)), fixed_names={GUID: "mlx5_0"}).values()
        if one.kind == "name"
    ] == [GUID]
