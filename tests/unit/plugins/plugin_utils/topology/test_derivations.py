# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Derivations on imagined machines, built without touching a file."""

from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.nic_order import build_affinity
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology import islands, mpi, nics
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from hypothesis import given
from hypothesis import strategies as st


def nic(name, rate=200, layer="InfiniBand", state="ACTIVE", gid=None, **more):
    port = {"port": 1, "state": state, "link_layer": layer, "rate_gbps": rate, "netdevs": [], "rocev2_gid_index": gid}
    return {"name": name, "pci_bus_id": None, "pci_device_id": None, "numa_node": 0, "ports": [port], **more}


def ports(name, *adapters):
    """One adapter with the ports of several."""
    found = [dict(adapter["ports"][0], port=number) for number, adapter in enumerate(adapters, 1)]
    return dict(nic(name), ports=found)


def gpu(index, links=0, version="3.0", cpus="0-15,64-79", width=16, generation=4, speed=None):
    link = {"active": True, "version": version, "remote_type": "gpu", "remote_pci_bus_id": None}
    link["speed_mbytes_per_second"] = speed
    return {
        "index": index, "pci_bus_id": f"0000:0{index}:00.0", "cpu_affinity": cpus, "numa_node": 0,
        "nvlinks": [dict(link, link=number) for number in range(links)],
        "pcie": {"generation": 1, "max_generation": generation, "width": width, "max_width": 16},
    }  # fmt: skip


def node(gpus, adapters, codes, default="SYS", distances=None):
    """codes: {(name, name): code}, either way round."""
    names = [f"GPU{entry['index']}" for entry in gpus] + [entry["name"] for entry in adapters]
    topology = {a: {b: "X" if a == b else codes.get((a, b), codes.get((b, a), default)) for b in names} for a in names}
    affinity = build_affinity(gpus, adapters, topology, distances)
    return {
        "gpus": gpus,
        "nics": adapters,
        "topology": topology,
        "numa_distances": distances or {},
        "affinity": affinity,
    }


@pytest.mark.parametrize(
    ("codes", "count", "expected"),
    [
        ({}, 2, [["GPU0"], ["GPU1"]]),
        ({("GPU0", "GPU1"): "NV4"}, 3, [["GPU0", "GPU1"], ["GPU2"]]),
        ({("GPU0", "GPU3"): "NV4", ("GPU1", "GPU2"): "NV4"}, 4, [["GPU0", "GPU3"], ["GPU1", "GPU2"]]),
        ({("GPU0", "GPU1"): "NV1", ("GPU1", "GPU2"): "NV2"}, 3, [["GPU0", "GPU1", "GPU2"]]),
        ({}, 0, []),
    ],
)
def test_islands(codes, count, expected):
    assert islands.nvlink_islands(node([gpu(index) for index in range(count)], [], codes)) == expected


def test_islands_are_in_the_order_of_their_gpus():
    codes = {("GPU10", "GPU2"): "NV4", ("GPU1", "GPU11"): "NV4"}
    expected = [["GPU0"], ["GPU1", "GPU11"], ["GPU2", "GPU10"], *([f"GPU{index}"] for index in range(3, 10))]
    assert islands.nvlink_islands(node([gpu(index) for index in range(12)], [], codes)) == expected


def test_a_gpu_whose_row_was_lost_is_alone():
    assert islands.linked(["GPU0", "GPU1"], {"GPU0": {"GPU0": "X", "GPU1": "NV4"}}) == [["GPU0"], ["GPU1"]]


@pytest.mark.parametrize(
    ("gpus", "codes", "expected"),
    [
        ([gpu(0, 12), gpu(1, 12)], {("GPU0", "GPU1"): "NV12"}, 300.0),
        ([gpu(0, 12), gpu(1, 8)], {("GPU0", "GPU1"): "NV8"}, 200.0),
        ([gpu(0, 4, "3.1"), gpu(1, 4, "3.1")], {("GPU0", "GPU1"): "NV4"}, 56.2),
        ([gpu(0, 4, "1.0"), gpu(1, 4, "1.0")], {("GPU0", "GPU1"): "NV4"}, 80.0),
        ([gpu(0, 18, "5.0"), gpu(1, 18, "5.0")], {("GPU0", "GPU1"): "NV18"}, 900.0),
        ([gpu(0, generation=5), gpu(1, generation=5)], {}, 63.0),
        ([gpu(0, 4, None), gpu(1, 4)], {("GPU0", "GPU1"): "NV4"}, None),
        ([gpu(0), gpu(1)], {}, 31.5),
        ([gpu(0), gpu(1, width=8)], {}, 15.8),
        ([gpu(0), gpu(1, generation=None)], {}, None),
        ([gpu(0, 12)], {}, None),
        # What NVML says of a link counts before its version, as of a GPU with slower links.
        ([gpu(0, 4, speed=26562), gpu(1, 4)], {("GPU0", "GPU1"): "NV4"}, 100.0),
        ([gpu(0, 4, speed=12500), gpu(1, 4)], {("GPU0", "GPU1"): "NV4"}, 50.0),
        ([gpu(0, 4, None, speed=12500), gpu(1, 4)], {("GPU0", "GPU1"): "NV4"}, 50.0),
    ],
)
def test_bandwidth(gpus, codes, expected):
    assert islands.expected_bus_bandwidth(node(gpus, [], codes)) == expected


RAILS = [nic(f"mlx5_{number}") for number in range(2)]
EFA = [nic(f"efa_{number}", 100, "Unknown") for number in range(2)]


@pytest.mark.parametrize(
    ("adapters", "codes", "variable"),
    [
        # All suit: nothing to say.
        (RAILS, {("GPU0", "mlx5_0"): "PXB", ("GPU0", "mlx5_1"): "PXB"}, None),
        # A storage adapter far from every GPU.
        ([*RAILS, nic("mlx5_11")], {("GPU0", "mlx5_0"): "PXB", ("GPU0", "mlx5_1"): "PIX"}, "=mlx5_0,mlx5_1"),
        # Rails are SYS sometimes: then the rate decides, whatever the names are.
        ([nic("ibp14s0"), nic("rocep80s0", 25, "Ethernet", gid=3)], {}, "=ibp14s0"),
        ([nic("mlx5_0", 25), nic("mlx5_1", 200)], {}, "=mlx5_1"),
        # Two link layers of one rate: more ports win.
        ([nic("a", layer="Ethernet", gid=3), nic("b", layer="Ethernet", gid=3), nic("c")], {}, "=a,b"),
        # A near adapter whose port is down is none.
        ([nic("mlx5_0", state="DOWN"), nic("mlx5_1")], {("GPU0", "mlx5_0"): "PIX"}, None),
        ([nic("mlx5_0", state="DOWN")], {}, None),
        # How far mlx5_1 is nobody knows: then nothing is said by distance.
        (RAILS, {("GPU0", "mlx5_0"): "PIX", ("GPU0", "mlx5_1"): None}, None),
        # Link layer and rate come before distance: a management port, or half a rate, on the GPU's switch is not a rail.
        ([nic("mlx5_0", 25, "Ethernet"), nic("mlx5_1", 400)], {("GPU0", "mlx5_0"): "PIX"}, "=mlx5_1"),
        ([nic("mlx5_0", 200), nic("mlx5_1", 400)], {("GPU0", "mlx5_0"): "PIX"}, "=mlx5_1"),
        # But four on the GPU's switches carry more than a faster one for storage.
        (
            [nic("mlx5_9", 400), *(nic(f"mlx5_{number}", 200) for number in range(4))],
            {("GPU0", f"mlx5_{number}"): "PXB" for number in range(4)},
            "=mlx5_0,mlx5_1,mlx5_2,mlx5_3",
        ),
        # A rate that nobody knows speaks against no adapter.
        ([nic("mlx5_0", None), nic("mlx5_1"), nic("mlx5_2", 25)], {}, "=mlx5_0,mlx5_1"),
        # One port of an adapter is the storage network.
        ([nic("a"), ports("b", nic("b"), nic("b", 100, "Ethernet", gid=3))], {}, "=a,b:1"),
        ([ports("b", nic("b"), nic("b", state="DOWN"))], {}, None),
        # NCCL itself takes none of another link layer, such as that of EFA, wherever they are.
        (EFA, {("GPU0", "efa_0"): "PIX"}, None),
        ([*EFA, nic("mlx5_0", 25, "Ethernet", gid=3)], {("GPU0", "efa_0"): "PIX"}, None),
        ([*EFA, *RAILS], {("GPU0", "mlx5_0"): "PIX"}, "=mlx5_0"),
        ([], {}, None),
    ],
)
def test_nccl_takes_rails_only(adapters, codes, variable):
    environment = nics.nccl_environment(node([gpu(0)], adapters, codes))
    assert environment["variables"].get("NCCL_IB_HCA") == variable
    assert environment["reasons"]["NCCL_IB_HCA"].startswith("Set" if variable else "Not set")


def test_the_reason_names_what_nccl_would_take_along():
    codes = {("GPU0", "mlx5_0"): "PIX"}
    reason = nics.nccl_environment(node([gpu(0)], RAILS, codes))["reasons"]["NCCL_IB_HCA"]
    assert reason == "Set: these adapters share a PCIe switch with a GPU; NCCL itself would also take mlx5_1."


def test_a_measured_machine_with_efas_has_no_problem_and_nccl_is_told_nothing(measure):
    whole = machines.dgx_a100()
    efas = [
        replace(nic, name=f"efa_{number}", link_layer="Unknown", netdev=None) for number, nic in enumerate(whole.nics)
    ]
    efas[-1] = replace(
        efas[-1], path=machines.below_root("pci0000:f0", "0000:f0:01.0", "0000:f1:00.0")
    )  # far from every GPU
    measured = measure(replace(whole, nics=tuple(efas)))
    assert measured["findings"] == []
    assert nics.hca_choice(measured) == ("", "")
    assert {one["nic"] for one in nics.rank_binding(measured)} <= {nic.name for nic in efas}


def test_ports_that_nobody_looked_at():
    adapters = [dict(nic("mlx5_0"), ports=[]), nic("mlx5_1", state=None)]
    assert nics.nccl_environment(node([gpu(0)], adapters, {})) == {
        "variables": {},
        "reasons": {
            "NCCL_IB_HCA": "Not set: it is not known whether a port of mlx5_0, mlx5_1 is up.",
            "NCCL_IB_GID_INDEX": "Not set: no port for training is known to be RoCE.",
        },
    }


def test_names_are_in_the_order_of_their_numbers():
    adapters = [nic(f"mlx5_{number}") for number in (10, 2, 1)]
    assert nics.nearest_nics(node([gpu(0)], adapters, {})) == {"GPU0": ["mlx5_1", "mlx5_2", "mlx5_10"]}


def gid(version, *indexes):
    adapters = [nic(f"mlx5_{number}", layer="Ethernet", gid=index) for number, index in enumerate(indexes)]
    environment = nics.nccl_environment(node([gpu(0)], adapters, {}), version)
    return environment["variables"].get("NCCL_IB_GID_INDEX"), environment["reasons"]["NCCL_IB_GID_INDEX"]


@pytest.mark.parametrize(
    ("gids", "index"),
    [([3, 3], "3"), ([3, 5], None), ([3, None], None)],
)
def test_the_gid_index_must_hold_for_all(gids, index):
    assert gid("2.20.5", *gids)[0] == index


@pytest.mark.parametrize(
    ("version", "gids", "reason"),
    [
        (None, [3], "Not set: the version of NCCL is not given, and from 2.21 on NCCL selects the GID itself and must not be given one."),
        ("2.21.5", [3], "Not set: NCCL 2.21.5 selects the GID itself and must not be given one."),
        ("2.20.5", [3, None], "Not set: an adapter has no routable RoCE v2 GID; give its interface an IP address."),
        ("2.20.5", [5, 3], "Not set: the adapters have their RoCE v2 GID at different indexes ([3, 5])."),
        ("2.20.5", [3, 3], "Set: the RoCE v2 GID is at this index on every adapter; NCCL 2.20.5 takes index 0."),
    ],
)  # fmt: skip
def test_the_reason_of_the_gid_index(version, gids, reason):
    assert gid(version, *gids)[1] == reason


def test_no_choice_has_no_reason():
    assert nics.hca_choice(node([gpu(0)], RAILS, {})) == ("", "")


@pytest.mark.parametrize("version", ["2.21", "2.21.5", "2.21.5-1+cuda12.4", "2.30.7", "3.0", None, "", "unknown"])
def test_no_gid_index_from_nccl_2_21_on_or_where_the_version_is_not_known(version):
    index, reason = gid(version, 3, 3)
    assert index is None
    assert "must not be given one" in reason


@pytest.mark.parametrize("version", ["2.4.8", "2.9.9", "2.20.5"])
def test_versions_are_compared_as_numbers(version):
    assert gid(version, 3, 3)[0] == "3"


@pytest.mark.parametrize(
    ("adapters", "codes", "reason"),
    [
        (
            [nic("a", 25, "Ethernet"), nic("b", 400)], {("GPU0", "a"): "PIX"},
            "Set: these adapters have the highest rate, 400 Gbit/s; NCCL itself would also take a.",
        ),
        (
            [nic("a", layer="Ethernet"), nic("b")], {},
            "Set: these adapters have link layer InfiniBand; NCCL itself would also take a.",
        ),
        (
            [nic("s", 400), nic("a"), nic("b"), nic("c")], {("GPU0", one): "PIX" for one in "abc"},
            "Set: these adapters share a PCIe switch with a GPU and carry more together than faster ones elsewhere; "
            "NCCL itself would also take s.",
        ),
        (
            [nic("a", 25), nic("b", 400), nic("c", 100)], {},
            "Set: these adapters have the highest rate, 400 Gbit/s; NCCL itself would also take a, c.",
        ),
        (
            [ports("b", nic("b"), nic("b", 100, "Ethernet", gid=3))], {},
            "Set: these adapters have the highest rate, 200 Gbit/s; NCCL itself would also take b.",
        ),
        (
            [nic("a"), ports("b", nic("b"), nic("b", 100, "Ethernet", gid=3))], {},
            "Set: these adapters have the highest rate, 200 Gbit/s; NCCL itself would also take b.",
        ),
        (
            [*RAILS, nic("mlx5_2")], {("GPU0", "mlx5_0"): "PIX", ("GPU0", "mlx5_1"): None, ("GPU0", "mlx5_2"): None},
            "Not set: NCCL itself takes every adapter with a port that is up, and nothing known speaks against any of the 3; "
            "how far mlx5_1, mlx5_2 is from every GPU was not measured.",
        ),
        (
            RAILS, {("GPU0", "mlx5_0"): "PIX", ("GPU0", "mlx5_1"): None},
            "Not set: NCCL itself takes every adapter with a port that is up, and nothing known speaks against any of the 2; "
            "how far mlx5_1 is from every GPU was not measured.",
        ),
        (
            [nic("mlx5_0"), nic("mlx5_1", state=None)], {},
            "Not set: NCCL itself takes every adapter with a port that is up, and nothing known speaks against any of the 1; "
            "it is not known whether a port of mlx5_1 is up.",
        ),
        (
            EFA, {("GPU0", "efa_0"): "PIX"},
            "Not set: NCCL itself takes none of efa_0, efa_1, whose link layer is neither InfiniBand nor Ethernet, and uses TCP unless a "
            "plugin brings a network.",
        ),
        (
            [EFA[0], *RAILS], {("GPU0", "mlx5_0"): "PIX"},
            "Set: these adapters share a PCIe switch with a GPU; NCCL itself would also take mlx5_1.",
        ),
        (
            [EFA[0], nic("mlx5_0")], {},
            "Not set: NCCL itself takes every adapter with a port that is up, and nothing known speaks against any of the 1; "
            "it takes none of efa_0, whose link layer is neither InfiniBand nor Ethernet.",
        ),
        (
            [nic("mlx5_0", state="DOWN")], {},
            "Not set: no adapter with a port that is up is known, so NCCL's own choice is TCP, unless a plugin brings a network.",
        ),
    ],
)  # fmt: skip
def test_a_reason_claims_what_is_known(adapters, codes, reason):
    assert nics.nccl_environment(node([gpu(0)], adapters, codes))["reasons"]["NCCL_IB_HCA"] == reason


def test_a_rank_takes_the_adapter_of_its_socket_before_one_that_is_free():
    distances = {"0": {"0": 10, "1": 12, "2": 32}, "2": {"0": 32, "1": 12, "2": 10}}
    adapters = [nic("mlx5_0", numa_node=2), nic("mlx5_1", numa_node=1)]
    machine = node([gpu(0), gpu(1)], adapters, {}, distances=distances)
    assert [one["nic"] for one in nics.rank_binding(machine)] == ["mlx5_1", "mlx5_1"]


def test_a_rank_takes_the_near_one_where_another_distance_is_not_known():
    codes = {("GPU0", "mlx5_0"): "SYS", ("GPU0", "mlx5_1"): None, ("GPU0", "mlx5_2"): "PXB"}
    adapters = [nic(f"mlx5_{number}") for number in range(3)]
    assert nics.rank_binding(node([gpu(0)], adapters, codes))[0]["nic"] == "mlx5_2"


def test_ranks_share_cpus_and_adapters_fairly():
    codes = {(f"GPU{index}", f"mlx5_{number}"): "PXB" for index in range(2) for number in range(2)}
    bindings = nics.rank_binding(node([gpu(0), gpu(1)], RAILS, codes))
    assert bindings == [
        {"local_rank": 0, "gpu": "GPU0", "cpus": "0-7,64-71", "numa_node": 0, "nic": "mlx5_0"},
        {"local_rank": 1, "gpu": "GPU1", "cpus": "8-15,72-79", "numa_node": 0, "nic": "mlx5_1"},
    ]


def test_a_rank_without_adapter_or_known_cpus():
    assert nics.rank_binding(node([gpu(0, cpus=None)], [], {})) == [
        {"local_rank": 0, "gpu": "GPU0", "cpus": None, "numa_node": 0, "nic": None}
    ]


@pytest.mark.parametrize(
    ("cpus", "of", "expected"),
    [
        ("0-15", 1, ["0-15"]),
        ("0-2", 3, ["0", "1", "2"]),
        ("0-15,64-79", 2, ["0-7,64-71", "8-15,72-79"]),
        ("0-3,8", 4, ["0,8", "1", "2", "3"]),
        # Every second CPU, in each notation; siblings behind a gap, and what is left over.
        ("0,2,4,6,8,10,12,14", 4, ["0,2", "4,6", "8,10", "12,14"]),
        ("0-14:2", 4, ["0,2", "4,6", "8,10", "12,14"]),
        ("0-15:1/2", 4, ["0,2", "4,6", "8,10", "12,14"]),
        ("0-31:2/8", 2, ["0,8,16,24", "1,9,17,25"]),
        ("0 2 4 6", 2, ["0,2", "4,6"]),  # as numactl --hardware writes them
        ("0xff0f", 2, ["0-1,8-11", "2-3,12-15"]),
        ("14,12,10,8,6,4,2,0", 2, ["0,2,4,6", "8,10,12,14"]),
        ("0-6:2,32-38:2", 2, ["0,2,32,34", "4,6,36,38"]),
        ("0-4,64-68", 2, ["0-2,64-65", "3-4,66-68"]),
        # Fewer CPUs than ranks.
        ("0", 2, ["0", "0"]),
        ("0-3", 8, ["0", "0", "1", "1", "2", "2", "3", "3"]),
        ("0,4", 3, ["0", "0", "4"]),
    ],
)
def test_shares_of_cpus(cpus, of, expected):
    assert [nics.share(cpus, number, of) for number in range(of)] == expected
    assert nics.share(None, 0, of) is None


def notation(cpus, style):
    """The same CPUs as kernels and people write them."""
    numbers = sorted(cpus)
    if style == "strides":
        return ",".join(f"{one}-{one + 1}:2" for one in numbers)
    return ",".join(map(str, numbers if style == "single" else reversed(numbers)))


@given(
    cpus=st.sets(st.integers(0, 300), min_size=1, max_size=120),
    of=st.integers(1, 16),
    style=st.sampled_from(["single", "reversed", "strides"]),
)
def test_shares_are_disjoint_even_and_all(cpus, of, style):
    shares = [nics.cpu_numbers(nics.share(notation(cpus, style), number, of)) for number in range(of)]
    every = [cpu for share in shares for cpu in share]
    assert set(every) == cpus
    if len(cpus) >= of:
        assert len(every) == len(cpus)
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
    else:
        assert {len(share) for share in shares} == {1}
        counts = [every.count(cpu) for cpu in cpus]
        assert max(counts) - min(counts) <= 1


def test_cpus_are_shared_in_whatever_notation_each_gpu_has_them():
    same = [gpu(0, cpus="0-3"), gpu(1, cpus="3,2,1,0"), gpu(2, cpus=None), gpu(3, cpus="4-7")]
    assert [one["cpus"] for one in nics.rank_binding(node(same, [], {}))] == ["0-1", "2-3", None, "4-7"]


def test_ranks_that_have_one_cpu_in_common_are_told():
    few = nics.rank_binding(node([gpu(number, cpus="0-1") for number in range(3)], [], {}))
    assert [one["cpus"] for one in few] == ["0", "0", "1"]
    assert nics.crowded(few) == {"0": 2}
    assert nics.crowded(nics.rank_binding(node([gpu(0), gpu(1)], [], {}))) == {}
    assert nics.crowded(nics.rank_binding(node([gpu(0, cpus=None), gpu(1, cpus=None)], [], {}))) == {}


def test_nearest_nics_are_those_of_the_affinity():
    assert nics.nearest_nics(node([gpu(0)], RAILS, {("GPU0", "mlx5_1"): "PIX"})) == {"GPU0": ["mlx5_1", "mlx5_0"]}


def test_files_for_mpi():
    measured = {"gpu-1": node([gpu(0), gpu(1)], [], {}), "cpu-1": node([], [], {})}
    assert mpi.mpi_hostfile(measured) == "gpu-1 slots=2\ncpu-1 slots=1\n"
    assert mpi.mpi_rankfile(measured) == "rank 0=gpu-1 slot=0-7,64-71\nrank 1=gpu-1 slot=8-15,72-79\n"
