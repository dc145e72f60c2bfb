# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding GPUs by what people and programs call them."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.gpu_names import find_gpu
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

TABLES = load()


@pytest.mark.parametrize("row", TABLES.rows("gpus"), ids=lambda row: row["model"])
def test_every_row_is_found_by_its_own_names(row):
    for name in (row["model"], *row.get("names", ()), *row["pci_ids"]):
        assert find_gpu(TABLES, name)["model"] == row["model"]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("A100-SXM4-40GB", "A100 SXM4 40GB"),
        ("Tesla T4", "Tesla T4"),
        ("t4", "Tesla T4"),
        ("NVIDIA GeForce RTX 3090", "GeForce RTX 3090"),
        ("rtx 3090 ti", "GeForce RTX 3090 Ti"),
        ("RTX A6000", "RTX A6000"),
        ({"name": None, "pci_device_id": "0x2235"}, "A40"),
        ({"name": "NVIDIA A40", "pci_device_id": "ffff"}, "A40"),
        # GPUs without a row: by id, by a name of the PCI ID database, by a newer database of the node, by capability.
        ({"name": None, "pci_device_id": "0x2c02"}, "GeForce RTX 5080"),
        ("NVIDIA GeForce RTX 5080", "GeForce RTX 5080"),
        ("2C02", "GeForce RTX 5080"),
        (
            {"name": None, "pci_device_id": "0x2bff", "pci_name": "GB202GL [RTX PRO 9000 Blackwell]"},
            "RTX PRO 9000 Blackwell",
        ),
        ({"name": None, "pci_device_id": "0x2bff", "pci_name": "GB202"}, "GB202"),
        ({"name": "NVIDIA X900", "pci_device_id": "0x2bff", "compute_capability": "12.0"}, "compute capability 12.0"),
        # Ids and names that the database knows of GPUs with a row.
        ({"name": None, "pci_device_id": "0x2216"}, "GeForce RTX 3080"),
        ({"name": None, "pci_device_id": "0xffff", "pci_name": "GA102GL [A40]"}, "A40"),
        # A part goes by the whole.
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100 SXM4 40GB"),
        ({"name": "NVIDIA H100 80GB HBM3 MIG 3g.40gb", "pci_device_id": None}, "H100 SXM5 80GB"),
    ],
)
def test_names(name, model):
    assert find_gpu(TABLES, name)["model"] == model


@pytest.mark.parametrize(
    ("name", "model", "capability"),
    [
        # as people write them
        ("H100 SXM", "H100 SXM5 80GB", "9.0"), ("h100sxm", "H100 SXM5 80GB", "9.0"), ("H100 PCI-E", "H100 PCIe 80GB", "9.0"),
        ("A100 80G", "A100 80G", "8.0"), ("A100-SXM4-80G", "A100 SXM4 80GB", "8.0"), ("A100 SXM 80GB", "A100 SXM4 80GB", "8.0"),
        ("rtx4090", "GeForce RTX 4090", "8.9"), ("3090Ti", "GeForce RTX 3090 Ti", "8.6"), ("A5000", "RTX A5000", "8.6"),
        ("RTX 4090 Laptop", "GeForce RTX 4090 Laptop GPU", "8.9"), ("Tesla V100S", "Tesla V100S PCIe 32GB", "7.0"),
        ("RTX PRO 6000 Max-Q", "RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0"),
        # without a row
        ("H800", "H800", "9.0"), ("A800", "A800 40GB PCIe", "8.0"), ("L20", "L20", "8.9"), ("L2", "L2", "8.9"),
        ("A2", "A2 / A16", "8.6"), ("A16", "A2 / A16", "8.6"), ("GTX 1060", "GeForce GTX 1060 3GB", "6.1"),
        ("RTX 5090 Laptop", "GeForce RTX 5090 Max-Q / Mobile", "12.0"), ("Quadro RTX 8000", "Quadro RTX 6000/8000", "7.5"),
        # as nvidia-smi -L and lspci write them
        ("GPU 0: NVIDIA A40 (UUID: GPU-0fe1)", "A40", "8.6"),
        ("NVIDIA Corporation GA102GL [A40] (rev a1)", "A40", "8.6"),
        # vGPUs of a board's form
        ("GRID A100D-80C", "GRID A100D-80C", "8.0"), ("NVIDIA A16-2Q", "A16-2Q", "8.6"),
    ],
)  # fmt: skip
def test_spellings(name, model, capability):
    row = find_gpu(TABLES, name)
    assert (row["model"], row["compute_capability"]) == (model, capability)


def test_a_model_with_rows_is_not_taken_for_a_device_of_the_same_name():
    """The PCI ID database has an H100, of which nothing but the chip is known."""
    assert find_gpu(TABLES, "H100")["ambiguous"][:1] == ["H100 SXM5 80GB"]
    assert find_gpu(TABLES, "RTX 2080")["model"] == "GeForce RTX 2080"


def test_a_short_name_takes_the_strictest_of_all_it_can_mean():
    row = find_gpu(TABLES, "V100")
    assert row["ambiguous"] == [
        "Tesla V100 SXM2 16GB",
        "Tesla V100 SXM2 32GB",
        "Tesla V100 SXM3 32GB",
        "Tesla V100 PCIe",
    ]
    assert row["kernel_modules"] == ["proprietary"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"pci_device_id": "0x2c02"}, {"name": "NVIDIA GeForce RTX 5080", "compute_capability": "12.0"}),
        ({"pci_device_id": "0x20b3"}, {"name": "NVIDIA A100-SXM-64GB", "compute_capability": "8.0"}),
        ({"pci_device_id": "0x2235"}, {"name": "NVIDIA A40", "compute_capability": "8.6"}),
        (
            {"pci_device_id": "0x2bff", "pci_name": "GB202GL [RTX PRO 9000 Blackwell]"},
            {"name": "NVIDIA RTX PRO 9000 Blackwell Max", "compute_capability": "12.0"},
        ),
    ],
    ids=lambda one: one.get("name", ""),
)
def test_a_gpu_is_the_same_before_and_after_there_is_a_driver(before, after):
    assert find_gpu(TABLES, before) == find_gpu(TABLES, {**before, **after})


@pytest.mark.parametrize(
    ("gpu", "model"),
    [
        ({"pci_device_id": "0x2235", "vgpu": True}, "A40 (vGPU)"),
        ({"pci_device_id": "0x2235", "vgpu": True, "name": "NVIDIA A40-8Q"}, "A40-8Q"),
        ({"pci_device_id": "0x13f2", "pci_subsystem_id": "10de:114d"}, "Tesla M60 (vGPU)"),
        ({"pci_device_id": "0x2330", "name": "NVIDIA H100XM-40C"}, "H100XM-40C"),
        ("GRID T4-16C", "GRID T4-16C"),
        ("NVIDIA A40-48Q", "A40-48Q"),
        ("A30-1-6CME", "A30-1-6CME"),
    ],
    ids=str,
)
def test_a_vgpu_is_not_its_board(gpu, model):
    row = find_gpu(TABLES, gpu)
    assert (row["model"], row["vgpu"]) == (model, True)


@pytest.mark.parametrize(
    "gpu",
    [
        {"pci_device_id": "0x2235", "vgpu": False, "name": "NVIDIA A40"},
        {"pci_device_id": "0x13f2", "pci_subsystem_id": "10de:113a", "vgpu": None},
        "NVIDIA A100-SXM4-40GB",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        "Tesla V100-SXM2-16GB",
    ],
    ids=str,
)
def test_a_board_is_no_vgpu(gpu):
    assert not find_gpu(TABLES, gpu).get("vgpu")


@pytest.mark.parametrize(
    ("number", "generation"),
    [
        ("0FE0", ("Kepler", "3.0", 470)), ("102D", ("Kepler", "3.7", 470)), ("17FD", ("Maxwell", "5.2", 580)),
        ("1B80", ("Pascal", "6.1", 580)), ("1DB2", ("Volta", "7.0", 580)), ("1E82", ("Turing", "7.5", None)),
        ("20B3", ("Ampere", "8.0", None)), ("25B6", ("Ampere", "8.6", None)), ("26B7", ("Ada", "8.9", None)),
        ("232C", ("Hopper", "9.0", None)), ("29BC", ("Blackwell", "10.0", None)), ("31A1", ("Blackwell", "10.3", None)),
        ("2F04", ("Blackwell", "12.0", None)), ("2E03", ("Blackwell", "12.1", None)),
    ],
)  # fmt: skip
def test_a_chip_tells_the_generation(number, generation):
    row = find_gpu(TABLES, {"pci_device_id": number})
    assert (row["architecture"], row["compute_capability"], row.get("max_driver_branch")) == generation


@pytest.mark.parametrize(
    "name",
    ["", "RTX", "Radeon Instinct MI250", "9.9", "ffff", "NVIDIA", "Laptop", "SXM", "80GB", "RTX 4000 SFF Edition 9"],
)
def test_what_is_no_gpu(name):
    assert find_gpu(TABLES, name) is None
