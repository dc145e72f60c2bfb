# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model on imagined machines, measured through their trees and, by the real pynvml, through the simulated library."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import gpu_node, sysfs
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines

# As "nvidia-smi topo -m" prints them.
MATRICES = {
    "no-gpu": "",
    "a40-pcie": """
                GPU0   GPU1   GPU2   GPU3   mlx5_0
        GPU0    X      NV4    SYS    SYS    PHB
        GPU1    NV4    X      SYS    SYS    NODE
        GPU2    SYS    SYS    X      NODE   SYS
        GPU3    SYS    SYS    NODE   X      SYS
        mlx5_0  PHB    NODE   SYS    SYS    X
    """,
    "dgx-a100": """
                GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7 mlx5_0 mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_7
        GPU0    X    NV12 NV12 NV12 NV12 NV12 NV12 NV12 PXB    PXB    SYS    SYS    SYS    SYS    SYS    SYS
        GPU1    NV12 X    NV12 NV12 NV12 NV12 NV12 NV12 PXB    PXB    SYS    SYS    SYS    SYS    SYS    SYS
        GPU2    NV12 NV12 X    NV12 NV12 NV12 NV12 NV12 SYS    SYS    PXB    PXB    SYS    SYS    SYS    SYS
        GPU3    NV12 NV12 NV12 X    NV12 NV12 NV12 NV12 SYS    SYS    PXB    PXB    SYS    SYS    SYS    SYS
        GPU4    NV12 NV12 NV12 NV12 X    NV12 NV12 NV12 SYS    SYS    SYS    SYS    PXB    PXB    SYS    SYS
        GPU5    NV12 NV12 NV12 NV12 NV12 X    NV12 NV12 SYS    SYS    SYS    SYS    PXB    PXB    SYS    SYS
        GPU6    NV12 NV12 NV12 NV12 NV12 NV12 X    NV12 SYS    SYS    SYS    SYS    SYS    SYS    PXB    PXB
        GPU7    NV12 NV12 NV12 NV12 NV12 NV12 NV12 X    SYS    SYS    SYS    SYS    SYS    SYS    PXB    PXB
        mlx5_0  PXB  PXB  SYS  SYS  SYS  SYS  SYS  SYS  X      PXB    SYS    SYS    SYS    SYS    SYS    SYS
        mlx5_1  PXB  PXB  SYS  SYS  SYS  SYS  SYS  SYS  PXB    X      SYS    SYS    SYS    SYS    SYS    SYS
        mlx5_2  SYS  SYS  PXB  PXB  SYS  SYS  SYS  SYS  SYS    SYS    X      PXB    SYS    SYS    SYS    SYS
        mlx5_3  SYS  SYS  PXB  PXB  SYS  SYS  SYS  SYS  SYS    SYS    PXB    X      SYS    SYS    SYS    SYS
        mlx5_4  SYS  SYS  SYS  SYS  PXB  PXB  SYS  SYS  SYS    SYS    SYS    SYS    X      PXB    SYS    SYS
        mlx5_5  SYS  SYS  SYS  SYS  PXB  PXB  SYS  SYS  SYS    SYS    SYS    SYS    PXB    X      SYS    SYS
        mlx5_6  SYS  SYS  SYS  SYS  SYS  SYS  PXB  PXB  SYS    SYS    SYS    SYS    SYS    SYS    X      PXB
        mlx5_7  SYS  SYS  SYS  SYS  SYS  SYS  PXB  PXB  SYS    SYS    SYS    SYS    SYS    SYS    PXB    X
    """,
    "hgx-h100": """
                GPU0  GPU1  GPU2  GPU3  GPU4  GPU5  GPU6  GPU7  mlx5_0  mlx5_1  mlx5_2  mlx5_3  mlx5_4  mlx5_5  mlx5_6  mlx5_7
        GPU0    X     NV18  NV18  NV18  NV18  NV18  NV18  NV18  PXB     PXB     NODE    NODE    SYS     SYS     SYS     SYS
        GPU1    NV18  X     NV18  NV18  NV18  NV18  NV18  NV18  PXB     PXB     NODE    NODE    SYS     SYS     SYS     SYS
        GPU2    NV18  NV18  X     NV18  NV18  NV18  NV18  NV18  NODE    NODE    PXB     PXB     SYS     SYS     SYS     SYS
        GPU3    NV18  NV18  NV18  X     NV18  NV18  NV18  NV18  NODE    NODE    PXB     PXB     SYS     SYS     SYS     SYS
        GPU4    NV18  NV18  NV18  NV18  X     NV18  NV18  NV18  SYS     SYS     SYS     SYS     PXB     PXB     NODE    NODE
        GPU5    NV18  NV18  NV18  NV18  NV18  X     NV18  NV18  SYS     SYS     SYS     SYS     PXB     PXB     NODE    NODE
        GPU6    NV18  NV18  NV18  NV18  NV18  NV18  X     NV18  SYS     SYS     SYS     SYS     NODE    NODE    PXB     PXB
        GPU7    NV18  NV18  NV18  NV18  NV18  NV18  NV18  X     SYS     SYS     SYS     SYS     NODE    NODE    PXB     PXB
        mlx5_0  PXB   PXB   NODE  NODE  SYS   SYS   SYS   SYS   X       PXB     NODE    NODE    SYS     SYS     SYS     SYS
        mlx5_1  PXB   PXB   NODE  NODE  SYS   SYS   SYS   SYS   PXB     X       NODE    NODE    SYS     SYS     SYS     SYS
        mlx5_2  NODE  NODE  PXB   PXB   SYS   SYS   SYS   SYS   NODE    NODE    X       PXB     SYS     SYS     SYS     SYS
        mlx5_3  NODE  NODE  PXB   PXB   SYS   SYS   SYS   SYS   NODE    NODE    PXB     X       SYS     SYS     SYS     SYS
        mlx5_4  SYS   SYS   SYS   SYS   PXB   PXB   NODE  NODE  SYS     SYS     SYS     SYS     X       PXB     NODE    NODE
        mlx5_5  SYS   SYS   SYS   SYS   PXB   PXB   NODE  NODE  SYS     SYS     SYS     SYS     PXB     X       NODE    NODE
        mlx5_6  SYS   SYS   SYS   SYS   NODE  NODE  PXB   PXB   SYS     SYS     SYS     SYS     NODE    NODE    X       PXB
        mlx5_7  SYS   SYS   SYS   SYS   NODE  NODE  PXB   PXB   SYS     SYS     SYS     SYS     NODE    NODE    PXB     X
    """,
    "a100-nvlink": """
                GPU0   GPU1   GPU2   GPU3   mlx5_0 mlx5_1
        GPU0    X      NV4    NV4    NV4    PHB    SYS
        GPU1    NV4    X      NV4    NV4    SYS    SYS
        GPU2    NV4    NV4    X      NV4    SYS    PHB
        GPU3    NV4    NV4    NV4    X      SYS    SYS
        mlx5_0  PHB    SYS    SYS    SYS    X      SYS
        mlx5_1  SYS    SYS    PHB    SYS    SYS    X
    """,
    "a100-80-nvlink": """
                GPU0   GPU1   GPU2   GPU3   mlx5_0 mlx5_1
        GPU0    X      NV4    NV4    NV4    PHB    SYS
        GPU1    NV4    X      NV4    NV4    SYS    SYS
        GPU2    NV4    NV4    X      NV4    SYS    PHB
        GPU3    NV4    NV4    NV4    X      SYS    SYS
        mlx5_0  PHB    SYS    SYS    SYS    X      SYS
        mlx5_1  SYS    SYS    PHB    SYS    SYS    X
    """,
    "rtx-3090-3080": """
                GPU0   GPU1
        GPU0    X      PHB
        GPU1    PHB    X
    """,
    "v100-pcie": """
                GPU0   GPU1
        GPU0    X      PHB
        GPU1    PHB    X
    """,
    "a100-pcie": """
                GPU0   GPU1
        GPU0    X      NV12
        GPU1    NV12   X
    """,
    "rtx-3090": """
                GPU0   GPU1
        GPU0    X      NV4
        GPU1    NV4    X
    """,
    "v100-cube-mesh": """
                GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7 mlx5_0 mlx5_1 mlx5_2 mlx5_3
        GPU0    X    NV1  NV1  NV2  NV2  SYS  SYS  SYS  PIX    PHB    SYS    SYS
        GPU1    NV1  X    NV2  NV1  SYS  NV2  SYS  SYS  PIX    PHB    SYS    SYS
        GPU2    NV1  NV2  X    NV2  SYS  SYS  NV1  SYS  PHB    PIX    SYS    SYS
        GPU3    NV2  NV1  NV2  X    SYS  SYS  SYS  NV1  PHB    PIX    SYS    SYS
        GPU4    NV2  SYS  SYS  SYS  X    NV1  NV1  NV2  SYS    SYS    PIX    PHB
        GPU5    SYS  NV2  SYS  SYS  NV1  X    NV2  NV1  SYS    SYS    PIX    PHB
        GPU6    SYS  SYS  NV1  SYS  NV1  NV2  X    NV2  SYS    SYS    PHB    PIX
        GPU7    SYS  SYS  SYS  NV1  NV2  NV1  NV2  X    SYS    SYS    PHB    PIX
        mlx5_0  PIX  PIX  PHB  PHB  SYS  SYS  SYS  SYS  X      PHB    SYS    SYS
        mlx5_1  PHB  PHB  PIX  PIX  SYS  SYS  SYS  SYS  PHB    X      SYS    SYS
        mlx5_2  SYS  SYS  SYS  SYS  PIX  PIX  PHB  PHB  SYS    SYS    X      PHB
        mlx5_3  SYS  SYS  SYS  SYS  PHB  PHB  PIX  PIX  SYS    SYS    PHB    X
    """,
    "a30-pairs": """
                GPU0   GPU1   GPU2   GPU3   mlx5_0
        GPU0    X      NV4    SYS    SYS    SYS
        GPU1    NV4    X      SYS    SYS    SYS
        GPU2    SYS    SYS    X      NV4    PXB
        GPU3    SYS    SYS    NV4    X      PIX
        mlx5_0  SYS    SYS    PXB    PIX    X
    """,
    "gb200-tray": """
                GPU0   GPU1   GPU2   GPU3   mlx5_0 mlx5_1 mlx5_2 mlx5_3
        GPU0    X      NV18   NV18   NV18   NODE   NODE   SYS    SYS
        GPU1    NV18   X      NV18   NV18   NODE   NODE   SYS    SYS
        GPU2    NV18   NV18   X      NV18   SYS    SYS    NODE   NODE
        GPU3    NV18   NV18   NV18   X      SYS    SYS    NODE   NODE
        mlx5_0  NODE   NODE   SYS    SYS    X      NODE   SYS    SYS
        mlx5_1  NODE   NODE   SYS    SYS    NODE   X      SYS    SYS
        mlx5_2  SYS    SYS    NODE   NODE   SYS    SYS    X      NODE
        mlx5_3  SYS    SYS    NODE   NODE   SYS    SYS    NODE   X
    """,
    "a100-mig": "GPU0\n GPU0 X",
}


def parse(matrix: str) -> dict:
    lines = [line.split() for line in matrix.strip().splitlines()]
    return {row[0]: dict(zip(lines[0], row[1:])) for row in lines[1:]}  # noqa: B905 - runs on Python 3.6, too


MATRICES["hgx-b200"] = MATRICES["hgx-h100"]
MATRICES["gh200"] = """
    GPU0 mlx5_0
    GPU0 X NODE
    mlx5_0 NODE X
"""


def test_every_machine_has_its_matrix():
    assert {machine().name for machine in machines.MACHINES} == set(MATRICES)


@pytest.mark.parametrize("machine", machines.MACHINES, ids=lambda machine: machine.__name__)
def test_topology(measure, machine):
    node = measure(machine())
    assert node["topology"] == parse(MATRICES[machine().name])
    assert node["problems"] == []


def test_a_host_without_gpu(measure):
    node = measure(machines.no_gpu())
    assert (node["gpus"], node["nics"], node["topology"], node["affinity"]) == ([], [], {}, {})
    assert node["nvswitches"] == {"count": 0, "pci_bus_ids": []}
    assert node["fabric"] == {"manager_needed": False, "state": None, "domain": None}
    assert node["driver"] == {
        "loaded_version": None,
        "library_version": None,
        "cuda_driver_version": None,
        "kernel_modules": None,
        "nvml": f"library {node['driver']['nvml'].split()[1]} not found",
        "nvml_state": "library_missing",
    }


def test_one_gpu_in_full(measure):
    gpu = measure(machines.a40_pcie())["gpus"][3]
    assert {key: value for key, value in gpu.items() if key not in ("nvlinks", "uuid")} == {
        "index": 3, "minor_number": 3, "name": "NVIDIA A40", "pci_bus_id": "0000:b1:00.0", "pci_device_id": "0x2235",
        "architecture": "Ampere", "compute_capability": "8.6", "memory_total_mib": 46068, "numa_node": 1,
        "cpu_affinity": "32-63,96-127", "pcie": {"generation": 1, "max_generation": 4, "width": 16, "max_width": 16},
        "persistence_mode": False, "compute_mode": "default", "ecc": {"current": True, "pending": True},
        "mig": {"current": None, "pending": None, "instances": []},
        "power_limit_watts": {"current": 300, "default": 300, "min": 100, "max": 300}, "seen_by": ["pci", "nvml"],
        "pci_subsystem_id": "10de:145a", "pci_name": None, "vgpu": False, "kernel_driver": None, "nvml_errors": {}, "fabric": None,
        "max_clocks_mhz": {"graphics": 1980, "sm": 1980, "memory": 2619}, "vbios_version": "96.00.00.00.01", "inforom_version": "G520.0200.00.05",
    }  # fmt: skip
    assert gpu["uuid"].startswith("GPU-")
    assert [link["active"] for link in gpu["nvlinks"]] == [False] * 4


def test_links_name_their_other_end(measure):
    node = measure(machines.a40_pcie())
    assert node["gpus"][0]["nvlinks"][0] == {
        "link": 0, "active": True, "version": "3.1", "remote_type": "gpu", "remote_pci_bus_id": "0000:31:00.0",
        "speed_mbytes_per_second": 14062,
    }  # fmt: skip


def test_switches_and_fabric(measure):
    node = measure(machines.hgx_h100())
    assert node["nvswitches"]["count"] == 4
    assert node["fabric"] == {"manager_needed": True, "state": "completed", "domain": None}
    assert node["driver"]["kernel_modules"] == "open"
    assert {link["remote_type"] for link in node["gpus"][0]["nvlinks"]} == {"nvswitch"}


def test_switches_of_nvlink_5_are_not_on_pci(measure):
    node = measure(machines.hgx_b200())
    assert node["nvswitches"]["count"] == 0
    assert node["fabric"] == {"manager_needed": True, "state": "completed", "domain": None}
    assert {link["remote_type"] for link in node["gpus"][0]["nvlinks"]} == {"nvswitch"}


def test_a_fabric_that_is_not_set_up_is_a_problem(measure):
    machine = machines.hgx_h100().change(0, settings=(("fabric_state", "1"),))
    assert measure(machine)["problems"] == [
        "The NVLink fabric is not started; CUDA cannot start until the fabric manager has configured it"
    ]


def test_a_fabric_of_a_rack_has_its_manager_elsewhere(measure):
    node = measure(machines.gb200_tray())
    assert node["nvswitches"]["count"] == 0
    assert node["fabric"] == {
        "manager_needed": False,
        "state": "completed",
        "domain": "abababab-abab-abab-abab-abababababab.0",
    }
    assert [gpu["pci_bus_id"] for gpu in node["gpus"]] == [f"{d}:01:00.0" for d in ("0008", "0009", "0018", "0019")]
    assert {link["remote_pci_bus_id"] for gpu in node["gpus"] for link in gpu["nvlinks"]} == {None}


def test_nics(measure):
    nic = measure(machines.a40_pcie())["nics"][0]
    assert nic == {
        "name": "mlx5_0", "pci_bus_id": "0000:18:00.0", "pci_device_id": "0x101b", "numa_node": 0, "firmware_version": None,
        "board_id": None, "ports": [
            {"port": 1, "state": "ACTIVE", "link_layer": "Ethernet", "rate_gbps": 25, "netdevs": ["ens1f0np0"], "rocev2_gid_index": 3},
        ],
    }  # fmt: skip


def test_affinity_names_the_best_nic_first(measure):
    affinity = measure(machines.dgx_a100())["affinity"]
    assert affinity["GPU4"]["nics"][:2] == ["mlx5_4", "mlx5_5"]
    assert (affinity["GPU4"]["numa_node"], affinity["GPU4"]["cpu_affinity"]) == (7, "112-127,240-255")


def test_instances_of_a_partitioned_gpu(measure):
    mig = measure(machines.a100_mig())["gpus"][0]["mig"]
    assert (mig["current"], len(mig["instances"])) == (True, 2)
    assert mig["instances"][1]["name"] == "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
    assert mig["instances"][1]["gpu_instance_id"] == 2


def test_without_a_driver_the_bus_still_tells(measure):
    node = measure(machines.a40_pcie().without_driver())
    assert [gpu["pci_device_id"] for gpu in node["gpus"]] == ["0x2235"] * 4
    assert {gpu["index"] for gpu in node["gpus"]} == {gpu["name"] for gpu in node["gpus"]} == {None}
    assert node["gpus"][0]["pcie"] == {"generation": 1, "max_generation": 4, "width": 16, "max_width": 16}
    assert node["gpus"][0]["seen_by"] == ["pci"]
    assert node["topology"]["0000:17:00.0"]["0000:31:00.0"] == "NODE"
    assert node["topology"]["0000:17:00.0"]["mlx5_0"] == "PHB"
    assert node["fabric"]["manager_needed"] is None
    assert node["problems"] == []


def test_without_a_driver_the_nodes_own_database_names_the_gpus(measure, tmp_path):
    (tmp_path / "pci.ids").write_text("10de  NVIDIA Corporation\n\t2235  GA102GL [A40]\n")
    databases = [str(tmp_path / name) for name in ("absent", "pci.ids")]
    for machine in (machines.a40_pcie().without_driver(), machines.a40_pcie()):
        assert {gpu["pci_name"] for gpu in measure(machine, databases=databases)["gpus"]} == {"GA102GL [A40]"}
        shutil.rmtree(tmp_path / "sys")


@pytest.mark.parametrize("vgpu", [False, True])
def test_a_vgpu_has_a_capability_of_its_own(measure, vgpu):
    machine = machines.a40_pcie().without_driver()
    model = replace(machine.gpus[0].model, vgpu=vgpu)
    assert [gpu["vgpu"] for gpu in measure(machine.change(0, model=model))["gpus"]] == [vgpu, False, False, False]


@pytest.mark.parametrize(
    "space", [None, bytes(64), b"\xff" * 256, bytes(0x34) + b"\x40" + bytes(11) + b"\x09\x40\x14V"]
)
def test_a_configuration_space_that_does_not_tell(tmp_path, space):
    """Absent, as others than root read it, of a device that fell off the bus, and cut off."""
    device = tmp_path / "bus/pci/devices/0000:17:00.0"
    device.mkdir(parents=True)
    if space is not None:
        (device / "config").write_bytes(space)
    known = space is not None and len(space) > 64
    assert sysfs.read_vgpu(FileTree(str(tmp_path)), "0000:17:00.0") is (False if known else None)


def test_capabilities_that_go_round_in_a_circle(tmp_path):
    device = tmp_path / "bus/pci/devices/0000:17:00.0"
    device.mkdir(parents=True)
    (device / "config").write_bytes(bytes(0x34) + b"\x40" + bytes(11) + b"\x01\x40" + bytes(190))
    assert sysfs.read_vgpu(FileTree(str(tmp_path)), "0000:17:00.0") is False


def test_a_driver_without_its_library_names_the_gpus(measure):
    node = measure(machines.a40_pcie().with_library(None))
    assert [gpu["name"] for gpu in node["gpus"]] == ["NVIDIA A40"] * 4
    assert [gpu["minor_number"] for gpu in node["gpus"]] == [0, 1, 2, 3]
    assert node["driver"]["loaded_version"] == "535.309.01"
    assert node["driver"]["nvml_state"] == "library_missing"
    assert [(problem["code"], problem["detail"]["loaded"]) for problem in node["findings"]] == [
        ("nvml_unavailable", "535.309.01")
    ]


def test_a_mismatched_library_is_named_with_both_versions(measure):
    node = measure(machines.a40_pcie().with_library("550.163.01"))
    assert "mismatch" in node["driver"]["nvml"]
    assert node["driver"]["library_version"] == "550.163.01"
    assert node["driver"]["nvml_state"] == "version_mismatch"
    assert node["problems"] == ["Driver version mismatch: kernel module 535.309.01, user-space library 550.163.01"]


def test_hidden_gpus_have_no_index_and_are_reported(measure):
    node = measure(machines.a40_pcie().change(1, hidden=True))
    assert [(gpu["index"], gpu["pci_bus_id"]) for gpu in node["gpus"]] == [
        (0, "0000:17:00.0"), (1, "0000:98:00.0"), (2, "0000:b1:00.0"), (None, "0000:31:00.0"),
    ]  # fmt: skip
    assert node["problems"] == ["GPU 0000:31:00.0 is on the PCI bus but not visible to NVML"]


def test_a_gpu_off_the_bus(measure):
    node = measure(machines.a40_pcie().change(2, lost=True))
    assert node["gpus"][3]["seen_by"] == ["pci"]
    assert node["problems"] == [
        "NVML cannot open GPU2: GPU is lost",
        "GPU 0000:98:00.0 is on the PCI bus but not visible to NVML",
    ]


def test_a_narrow_pcie_link(measure):
    assert measure(machines.rtx_3090().change(1, width=8))["problems"] == ["GPU1 has a PCIe x8 link but supports x16"]


def test_a_gpu_with_fewer_links(measure):
    machine = machines.dgx_a100()
    node = measure(machine.change(5, links=machine.gpus[5].links[:8]))
    assert node["problems"] == ["GPU5 has 8 active NVLinks, not 12"]
    assert node["topology"]["GPU5"]["GPU0"] == "NV8"


def test_pairs_without_nvlink_take_nvmls_word(measure):
    pair = ("0000:17:00.0", "0000:98:00.0")
    node = measure(machines.a40_pcie(), {pair: "PHB"})
    assert node["topology"]["GPU0"]["GPU2"] == "PHB"


def acs_problems(measure, tmp_path, machine, control, path):
    """Bridges of which it is said that they redirect, where the last one of a path does as the register says."""
    config = bytearray(4096)
    config[0x100:0x104] = (0x000D | 1 << 16).to_bytes(4, "little")
    config[0x106:0x108] = control.to_bytes(2, "little")
    assert measure(machine)["problems"] == []
    (tmp_path / "sys/devices" / Path(*path) / "config").write_bytes(bytes(config))
    (tmp_path / "sys/bus/pci/devices" / path[-1]).symlink_to(tmp_path / "sys/devices" / Path(*path))
    again = gpu_node.measure(FileTree(str(tmp_path / "sys")), FileTree(str(tmp_path / "proc")), "none")
    return [one["subject"] for one in again["findings"] if one["code"] == "acs_redirect"]


@pytest.mark.parametrize(
    ("control", "redirects"),
    [
        (0x04, True),
        (0x08, True),
        (0x20, True),
        (0x1D, True),
        (0x01, False),
        (0x02, False),
        (0x10, False),
        (0x53, False),
    ],
)
def test_acs_redirection_at_a_bridge_between_peers(measure, tmp_path, control, redirects):
    """Request and completion redirect and egress control; source validation and upstream forwarding do no harm."""
    machine = machines.v100_cube_mesh()
    path = machine.gpus[0].path[:-1]
    assert acs_problems(measure, tmp_path, machine, control, path) == ([path[-1]] if redirects else [])


def test_acs_redirection_at_the_bridge_of_an_adapter(measure, tmp_path):
    machine = machines.v100_cube_mesh()
    path = machine.nics[0].path[:-1]
    assert acs_problems(measure, tmp_path, machine, 0x1C, path) == [path[-1]]


@pytest.mark.parametrize("make", [machines.a40_pcie, machines.a100_nvlink, machines.rtx_3090_3080])
def test_acs_redirection_at_the_root_port_of_a_single_gpu_is_in_nobodys_way(measure, tmp_path, make):
    machine = make()
    assert acs_problems(measure, tmp_path, machine, 0x1D, machine.gpus[0].path[:-1]) == []


def test_acs_redirection_above_a_switch_of_which_all_hang_is_in_nobodys_way(measure, tmp_path):
    """The root port of the switch: peers below it meet at the switch."""
    machine = machines.v100_cube_mesh()
    assert acs_problems(measure, tmp_path, machine, 0x1D, machine.gpus[0].path[:2]) == []


def test_no_more_is_asked_of_a_device_than_its_capabilities(tmp_path):
    """What is not read stays in a pipe."""
    device = tmp_path / "bus/pci/devices/0000:17:00.0"
    device.mkdir(parents=True)
    os.mkfifo(str(device / "config"))
    pipe = os.open(str(device / "config"), os.O_RDWR | os.O_NONBLOCK)
    os.write(pipe, bytes(4096))
    assert sysfs.read_vgpu(FileTree(str(tmp_path)), "0000:17:00.0") is False
    assert len(os.read(pipe, 4096)) == 4096 - 256
    os.close(pipe)
