# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports are rails, and which of them are down or slow."""

import dataclasses

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import rails
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.describe import describe
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines

GPUS = [{"index": 0, "pci_bus_id": "0000:01:00.0"}]


def port(number=1, state="ACTIVE", rate=400, layer="InfiniBand"):
    return {"port": number, "state": state, "link_layer": layer, "rate_gbps": rate}


def nic(name, *ports, address=None, model="0x1021"):
    return {"name": name, "pci_bus_id": address, "pci_device_id": model, "ports": list(ports) or [port()]}


def codes_of(nics, codes):
    return {"GPU0": {one["name"]: None if code == "-" else code for one, code in zip(nics, codes.split())}}  # noqa: B905 - runs on Python 3.6, too


def found(codes, *nics):
    problems = rails.rail_problems(GPUS, nics, codes_of(nics, codes))
    return [(one["code"], one["subject"]) for one in problems]


@pytest.mark.parametrize(
    ("codes", "nics", "expected"),
    [
        ("PIX", [nic("a", port(state="DOWN"))], None),
        ("PIX SYS", [nic("a", port(rate=25, layer="Ethernet")), nic("b")], ("InfiniBand", 400)),
        ("PIX SYS", [nic("a", port(rate=200)), nic("b", port(layer="Ethernet"))], ("Ethernet", 400)),
        # Two at half a rate carry as much as the fast one: no reason to prefer them.
        ("PIX PIX SYS", [nic("a", port(rate=200)), nic("b", port(rate=200)), nic("c")], ("InfiniBand", 400)),
        ("PIX PIX PIX SYS", [*(nic(name, port(rate=200)) for name in "abd"), nic("c")], ("InfiniBand", 200)),
        # One of the fastest is near, or might be: then it is a rail.
        ("PIX PIX PIX PXB", [*(nic(name, port(rate=200)) for name in "abd"), nic("c")], ("InfiniBand", 400)),
        ("PIX PIX PIX -", [*(nic(name, port(rate=200)) for name in "abd"), nic("c")], ("InfiniBand", 400)),
        ("SYS SYS SYS", [nic("a", port(layer="Ethernet")), nic("b"), nic("c", port(rate=None))], ("InfiniBand", 400)),
        (
            "SYS SYS SYS",
            [nic("a", port(layer="Ethernet")), nic("b"), nic("c", port(layer="Ethernet"))],
            ("Ethernet", 400),
        ),
        ("SYS", [nic("a", port(rate=None))], ("InfiniBand", None)),
    ],
)
def test_the_class_of_the_rails(codes, nics, expected):
    assert rails.training_class(GPUS, nics, codes_of(nics, codes)) == expected


def test_the_class_does_not_depend_on_the_order_of_the_adapters():
    nics = [nic("a", port(layer="Ethernet")), nic("b")]
    topology = codes_of(nics, "SYS SYS")
    assert rails.training_class(GPUS, nics, topology) == rails.training_class(GPUS, nics[::-1], topology)


DOWN, HALF = port(state="DOWN", rate=10), port(rate=200)


@pytest.mark.parametrize(
    ("codes", "nics", "expected"),
    [
        ("PIX PIX PIX", [nic("a"), nic("b"), nic("c")], []),
        ("PIX PIX", [nic("a"), nic("b", DOWN)], [("rail_down", "b")]),
        (
            "PIX PXB PIX",
            [nic("a"), nic("b", HALF), nic("c", port(state="INIT"))],
            [("rail_down", "c"), ("rail_slow", "b")],
        ),
        # Elsewhere only a model that is known tells that they are equals, and most must be well.
        ("NODE SYS SYS", [nic("a"), nic("b"), nic("c", DOWN)], [("rail_down", "c")]),
        ("NODE SYS", [nic("a"), nic("b", DOWN)], []),
        ("NODE SYS SYS", [nic("a", model=None), nic("b", model=None), nic("c", DOWN, model=None)], []),
        # No rail: an adapter for storage, of another place, model or link layer.
        ("PIX PIX NODE", [nic("a"), nic("b"), nic("c", DOWN)], []),
        ("PIX PIX PIX", [nic("a"), nic("b"), nic("c", DOWN, model="0x101d")], []),
        ("PIX PIX PIX", [nic("a"), nic("b"), nic("c", port(state="DOWN", layer="Ethernet"))], []),
        ("PIX PIX PIX", [nic("a"), nic("b"), nic("c", port(rate=100, layer="Ethernet"))], []),
        # Most have no cable: so is it meant.
        ("PIX PIX PIX", [nic("a"), nic("b", DOWN), nic("c", DOWN)], []),
        # A second port without a cable, on one adapter or as a function of its own.
        ("PIX PIX", [nic("a", port(), port(2, "DOWN")), nic("b", port(), port(2, "DOWN"))], []),
        ("PIX PIX", [nic("a", port(), port(2, "DOWN")), nic("b", port(), port(2))], []),
        ("PIX PIX", [nic("a", address="0000:41:00.0"), nic("b", DOWN, address="0000:41:00.1")], []),
        ("PIX PIX", [nic("a", address="0000:41:00.0"), nic("b", DOWN, address="0000:61:00.0")], [("rail_down", "b")]),
        # The first port of one, where its equals use both; another port may have the cable of a first one.
        ("PIX PIX", [nic("a", port(), port(2)), nic("b", DOWN, port(2))], [("rail_down", "b")]),
        (
            "NODE SYS SYS",
            [nic("a", port(), port(2)), nic("b", port(), port(2)), nic("c", DOWN, port(2))],
            [("rail_down", "c")],
        ),
        ("PIX PIX", [nic("a", port(), port(2, "DOWN")), nic("b", DOWN, port(2))], []),
        ("PIX PIX PIX", [nic("a", port(), port(2)), nic("b", port(), port(2, "DOWN")), nic("c", DOWN, port(2))], []),
        # What is not known is not a fault.
        ("PIX -", [nic("a"), nic("b", DOWN)], []),
        ("PIX PIX", [nic("a"), nic("b", port(state=None))], []),
        ("PIX PIX", [nic("a"), nic("b", port(rate=None))], []),
        ("PIX PIX", [nic("a", port(rate=None)), nic("b", port(rate=None))], []),
        ("PIX PIX", [nic("a", DOWN), nic("b", DOWN)], []),
    ],
)
def test_a_rail_that_is_down_or_slow(codes, nics, expected):
    assert found(codes, *nics) == expected


def sentences(machine, *changes):
    nics = list(machine.nics)
    for number, what in changes:
        nics[number] = dataclasses.replace(nics[number], **what)
    return dataclasses.replace(machine, nics=tuple(nics))


def test_the_sentence_names_adapter_port_rate_and_equals(measure):
    machine = sentences(machines.hgx_h100(), (2, {"state": "DOWN"}), (5, {"rate_gbps": 100}))
    peers = "mlx5_0, mlx5_1, mlx5_3, mlx5_4, mlx5_6, mlx5_7"
    assert measure(machine)["problems"] == [
        f"mlx5_2 port 1 is DOWN, while its peers run at 200 Gbit/s: {peers}",
        f"mlx5_5 port 1 runs at 100 Gbit/s, while its peers run at 200 Gbit/s: {peers}",
    ]


def test_records_are_plain(measure):
    (record,) = measure(sentences(machines.hgx_h100(), (2, {"state": "DOWN"})))["findings"]
    assert (record["code"], record["subject"], record["detail"]["port"]) == ("rail_down", "mlx5_2", 1)
    assert describe(record).startswith("mlx5_2 port 1 is DOWN")


def test_health_names_it_too(examine):
    result = examine(sentences(machines.hgx_h100(), (2, {"state": "DOWN"})))
    assert [(one["check"], one["severity"]) for one in result["findings"]] == [("other_problems", "degraded")]
    assert "cable" in result["findings"][0]["action"]


@pytest.mark.parametrize("machine", machines.MACHINES, ids=lambda machine: machine.__name__)
def test_no_false_alarm(measure, machine):
    node = measure(machine())
    assert not [one for one in node["findings"] if one["code"].startswith("rail_")]


def test_the_nearest_adapter_of_a_gpu_whose_rail_is_down_is_the_next(measure):
    affinity = measure(sentences(machines.hgx_h100(), (0, {"state": "DOWN"})))["affinity"]
    assert affinity["GPU0"]["nics"][0] == "mlx5_1"
    assert affinity["GPU0"]["nics"][-1] == "mlx5_0"


# Two sockets with two nodes each.
SOCKETS = {0: [10, 12, 32, 32], 1: [12, 10, 32, 32], 2: [32, 32, 10, 12], 3: [32, 32, 12, 10]}


def test_the_adapter_of_the_socket_is_nearer(measure):
    """GPU1 and GPU3 have no adapter at their node; "nvidia-smi topo -m" says SYS of both."""
    node = measure(dataclasses.replace(machines.a100_nvlink(), distances=SOCKETS))
    assert {node["topology"]["GPU3"][name] for name in ("mlx5_0", "mlx5_1")} == {"SYS"}
    assert [node["affinity"][f"GPU{number}"]["nics"][0] for number in range(4)] == [
        "mlx5_0",
        "mlx5_0",
        "mlx5_1",
        "mlx5_1",
    ]
    assert node["numa_distances"]["3"] == {"0": 32, "1": 32, "2": 12, "3": 10}


def test_without_distances_the_address_decides(measure):
    node = measure(machines.a100_nvlink())
    assert node["affinity"]["GPU3"]["nics"] == ["mlx5_0", "mlx5_1"]


@pytest.mark.parametrize("distances", [{0: [10, 12]}, {1: ["-", "-", "-", "-"]}])
def test_distances_that_cannot_be_read_are_not_known(measure, distances):
    assert measure(dataclasses.replace(machines.a100_nvlink(), distances=distances))["numa_distances"] == {}


def test_an_adapter_on_the_bus_without_an_rdma_device_is_told(examine, measure):
    place = "sys/bus/pci/devices/0000:fe:00.0/"
    hgx = machines.hgx_h100().with_files(
        {place + "vendor": "0x15b3\n", place + "device": "0x101b\n", place + "class": "0x020700\n"}
    )
    assert measure(hgx)["problems"] == ["Adapter 0000:fe:00.0 has no RDMA device; its driver is none"]
    (one,) = examine(hgx)["findings"]
    assert (one["check"], one["severity"], one["action_class"]) == ("other_problems", "degraded", "configure")
