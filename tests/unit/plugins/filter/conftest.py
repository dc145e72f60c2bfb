# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A measured node that filters are tried on."""

import pytest


def gpu(index, cpus):
    link = {"active": True, "version": "3.0", "remote_type": "gpu", "remote_pci_bus_id": None}
    return {
        "index": index, "pci_bus_id": f"0000:0{index + 1}:00.0", "cpu_affinity": cpus, "numa_node": 0, "name": "A100", "compute_capability": "8.0",
        "nvlinks": [dict(link, link=number) for number in range(4)],
        "pcie": {"generation": 4, "max_generation": 4, "width": 16, "max_width": 16},
    }  # fmt: skip


@pytest.fixture
def measured():
    """Two GPUs that NVLink joins, of which only the second is next to the node's adapter."""
    port = {
        "port": 1,
        "state": "ACTIVE",
        "link_layer": "InfiniBand",
        "rate_gbps": 200,
        "netdevs": [],
        "rocev2_gid_index": None,
    }
    adapter = {"name": "mlx5_0", "pci_bus_id": "0000:05:00.0", "pci_device_id": None, "numa_node": 0, "ports": [port]}
    return {
        "gpus": [gpu(0, "0-7"), gpu(1, "8-15")],
        "nics": [adapter],
        "topology": {
            "GPU0": {"GPU0": "X", "GPU1": "NV4", "mlx5_0": "SYS"},
            "GPU1": {"GPU0": "NV4", "GPU1": "X", "mlx5_0": "PIX"},
            "mlx5_0": {"GPU0": "SYS", "GPU1": "PIX", "mlx5_0": "X"},
        },
        "numa_distances": {},
        "affinity": {name: {"cpu_affinity": None, "numa_node": 0, "nics": ["mlx5_0"]} for name in ("GPU0", "GPU1")},
    }
