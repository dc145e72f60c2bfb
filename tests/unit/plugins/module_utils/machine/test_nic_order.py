# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which adapter is the best for a GPU: fit for training first, then near, then of its socket, then by address."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.nic_order import (
    build_affinity,
    code_rank,
    nearest_nics,
    node_distance,
)

GPU = {"index": 0, "pci_bus_id": "0000:01:00.0", "numa_node": 0, "cpu_affinity": "0-7"}
FULL = ("InfiniBand", 400)
# Two sockets with two nodes each: node 1 is nearer to node 0 than those of the other socket are.
DISTANCES = {"0": {"0": 10, "1": 12, "2": 32, "3": 32}}


def nic(name, state="ACTIVE", rate=400, layer="InfiniBand", node=0, address=None):
    ports = [{"port": 1, "state": state, "link_layer": layer, "rate_gbps": rate}] if state != "unread" else []
    return {"name": name, "pci_bus_id": address, "numa_node": node, "ports": ports}


def order(codes, nics, distances=None, wanted=FULL):
    """codes: those of the adapters in their order."""
    row = {one["name"]: code for one, code in zip(nics, codes.split())}  # noqa: B905 - runs on Python 3.6, too
    row = {name: None if code == "-" else code for name, code in row.items()}
    return " ".join(nearest_nics(GPU, {"GPU0": row}, nics, wanted, distances))


@pytest.mark.parametrize(
    ("codes", "nics", "expected"),
    [
        # Link layer and rate before distance.
        ("PIX SYS", [nic("a", layer="Ethernet", rate=25), nic("b")], "b a"),
        ("PIX SYS", [nic("a", layer="Ethernet", rate=400), nic("b")], "b a"),
        ("PIX NODE", [nic("a", rate=200), nic("b")], "b a"),
        ("PIX SYS", [nic("a", rate=200), nic("b", rate=100, layer="Ethernet")], "a b"),
        ("PIX SYS", [nic("a", rate=25, layer="Ethernet"), nic("b", rate=100, layer="Ethernet")], "b a"),
        # What is up before what nobody looked at, that before what is down.
        ("PIX PIX SYS", [nic("a", state="DOWN"), nic("b", state="unread"), nic("c")], "c b a"),
        ("PIX NODE", [nic("a", state="DOWN"), nic("b", state=None)], "b a"),
        # A rate that is not known is no lower rate.
        ("SYS PIX NODE", [nic("a"), nic("b", rate=None), nic("c", rate=200)], "a b c"),
        ("SYS NODE", [nic("a"), nic("b")], "b a"),
    ],
)
def test_fit_before_near(codes, nics, expected):
    assert order(codes, nics) == expected


def test_roce_is_as_good_as_infiniband():
    nics = [nic("a", layer="Ethernet", rate=25), nic("b", layer="Ethernet", rate=400)]
    assert order("PIX SYS", nics, wanted=("Ethernet", 400)) == "b a"


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ("PIX PXB PHB NODE SYS", "a b c d e"),
        ("SYS NODE PHB PXB PIX", "e d c b a"),
        # None is nearer than PIX and PXB, none farther than SYS; what is between may be on either side of what nobody knows.
        ("SYS - NODE", "b c a"),
        ("- NODE PHB", "a b c"),
        ("NODE - PHB", "a b c"),
        ("- - PXB", "c a b"),
        ("- - -", "a b c"),
    ],
)
def test_what_was_not_measured_orders_nothing(codes, expected):
    assert order(codes, [nic(name) for name in "abcde"[: len(codes.split())]]) == expected


def test_an_unknown_code_of_an_unfit_adapter_is_in_nobodys_way():
    assert order("NODE PHB -", [nic("a"), nic("b"), nic("c", state="DOWN")]) == "b a c"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ((2, 1, 3), "b a c"),
        ((3, 2, 0), "c a b"),
        # One of them is not known: then the socket decides nothing.
        ((2, None, 0), "a b c"),
        ((2, 7, 0), "a b c"),
    ],
)
def test_the_socket_decides_ties(nodes, expected):
    nics = [nic(name, node=node) for name, node in zip("abc", nodes)]  # noqa: B905 - runs on Python 3.6, too
    assert order("SYS SYS SYS", nics, DISTANCES) == expected


def test_a_code_comes_before_the_socket():
    assert order("NODE PHB", [nic("a", node=0), nic("b", node=1)], DISTANCES) == "b a"


def test_equals_are_in_the_order_of_their_addresses():
    places = {"mlx5_2": "0000:41:00.0", "mlx5_10": "0000:1a:00.0", "mlx5_0": None, "mlx5_1": "0000:41:00.1"}
    nics = [nic(name, address=address) for name, address in places.items()]
    expected = "mlx5_10 mlx5_2 mlx5_1 mlx5_0"
    assert order("SYS SYS SYS SYS", nics) == order("SYS SYS SYS SYS", nics[::-1]) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"), [(0, 0, 10), (5, 5, 10), (0, 2, 32), (0, 9, None), (None, 0, None), (0, None, None)]
)
def test_the_distance_of_nodes(one, other, expected):
    assert node_distance(one, other, DISTANCES) == expected


def test_nodes_without_distances():
    assert (node_distance(0, 0), node_distance(0, 1)) == (10, None)


def test_ranks_of_codes():
    assert [code_rank(code, False) for code in ("PIX", "PXB", "PHB", "NODE", "SYS")] == [1, 2, 3, 4, 5]
    assert [code_rank(code, True) for code in ("PIX", "PXB", "PHB", "NODE", "SYS", None)] == [1, 2, 4, 4, 5, 4]


def test_the_class_of_the_rails_is_that_of_the_node():
    nics = [nic("a", rate=25, layer="Ethernet"), nic("b")]
    affinity = build_affinity([GPU], nics, {"GPU0": {"a": "PIX", "b": "SYS"}})
    assert affinity == {"GPU0": {"cpu_affinity": "0-7", "numa_node": 0, "nics": ["b", "a"]}}
