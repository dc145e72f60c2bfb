# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of GPUs and the order of names; distances are tested on whole machines in test_gpu_node.py."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.topology import (
    bridges_between,
    gpu_label,
    natural_key,
    pci_code,
    peer_bridges,
    switch_links,
)


@pytest.mark.parametrize(("index", "name"), [(0, "GPU0"), (12, "GPU12"), (None, "0000:3b:00.0")])
def test_a_gpu_goes_by_its_index_else_by_its_address(index, name):
    assert gpu_label({"index": index, "pci_bus_id": "0000:3b:00.0"}) == name


@pytest.mark.parametrize(
    "ordered",
    [
        ["mlx5_2", "mlx5_10"],
        ["gpu-1", "gpu-2", "gpu-10", "login"],
        ["9", "10", "node"],
        ["node09", "node9", "node10"],
        ["x", "x\u00b2"],
        ["mlx5_0", "mlx5_00", "mlx5_" + "8" * 5000, "mlx5_" + "9" * 5000],
    ],
)
def test_numbers_in_names_sort_as_numbers(ordered):
    backwards = ordered[::-1]
    assert sorted(backwards, key=natural_key) == ordered


@pytest.mark.parametrize(
    ("code", "nics", "found"),
    [
        ("PIX", [], {"u", "d1", "d2"}),
        ("NV4", [], set()),
        ("NV4", ["mlx5_0"], {"u", "d1", "d2", "d3"}),
        (None, [], {"u", "d1", "d2"}),
    ],
)
def test_bridges_between_peers(code, nics, found):
    """Two GPUs below one switch, which NVLink may join, and adapters at a third port of it."""
    gpus = [{"index": number, "pci_bus_id": f"g{number}"} for number in (0, 1)]
    codes = {"GPU0": {"GPU1": code, "mlx5_0": "PIX"}, "GPU1": {"GPU0": code, "mlx5_0": "PIX"}}
    paths = {"g0": ["h", "r", "u", "d1", "g0"], "g1": ["h", "r", "u", "d2", "g1"], "mlx5_0": ["h", "r", "u", "d3", "n"]}
    assert peer_bridges(gpus, [{"name": name} for name in nics], codes, paths) == found
    assert peer_bridges(gpus, [{"name": name} for name in nics], codes, {}) == set()


@pytest.mark.parametrize(
    ("path", "other", "expected"),
    [
        ("h r u d1 a", "h r u d2 b", ["u", "d1", "d2"]),
        ("h r u d1 a", "h r u d2 u2 d3 b", ["u", "d1", "d2", "u2", "d3"]),
        ("h r1 a", "h r2 b", None),
        ("h r a", "i r b", None),
        ("h r a.0", "h r a.1", ["r"]),
        ("h a", "h b", None),
        ("", "h r a", None),
    ],
)
def test_the_way_between_two_devices(path, other, expected):
    assert bridges_between(path.split(), other.split()) == expected
    back = bridges_between(other.split(), path.split())
    assert (back and set(back)) == (expected and set(expected))


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (["pci0000:00", "up", "d1", "gpu"], ["pci0000:00", "up", "d2", "nic"], "PIX"),
        (["pci0000:00", "up", "d1", "up2", "d3", "gpu"], ["pci0000:00", "up", "d2", "nic"], "PXB"),
        (["pci0000:00", "up", "d1", "x", "gpu"], ["pci0000:00", "up", "d2", "nic"], "PXB"),
        (["pci0000:00", "p1", "gpu"], ["pci0000:00", "p2", "nic"], "PHB"),
        (["pci0000:00", "p1", "gpu"], ["pci0000:80", "p2", "nic"], "SYS"),
        ([], ["pci0000:80", "p2", "nic"], None),
    ],
)
def test_the_distance_on_pci(first, second, code):
    assert pci_code(first, second, 0, 1, True) == code


@pytest.mark.parametrize(
    ("links", "count"),
    [
        ([(True, "nvswitch"), (True, "nvswitch")], 2),
        ([(True, "nvswitch"), (False, "nvswitch")], 1),
        ([(True, None), (False, None)], 1),
        ([(True, "gpu")], 0),
    ],
)
def test_only_active_links_lead_to_switches(links, count):
    listed = [{"active": active, "remote_type": kind, "remote_pci_bus_id": None} for active, kind in links]
    assert switch_links({"nvlinks": listed}) == count
