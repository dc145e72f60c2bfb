# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCIe of recorded machines: devices, bridges, the IOMMU and guests; and what speaks against a change."""

from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import sysfs
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import pcie_facts as pcie
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils import pcie_helper as helper
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree


def codes(fact):
    return [one["code"] for one in pcie.refusals(fact)]


def test_an_hgx_h100(tmp_path):
    machine = machines.hgx_h100()
    fact = pcie.read_pcie(helper.record(machine, tmp_path))
    assert [one["kind"] for one in fact["devices"]] == ["gpu"] * 8 + ["nic"] * 8
    assert {part for one in fact["devices"] for part in one["path"][1:-1]} == set(fact["bridges"])
    first, bridges = fact["devices"][0], fact["bridges"]
    assert first["path"] == list(machine.gpus[0].path) and first["iommu_type"] == "identity"
    assert [bridges[part]["port"] for part in first["path"][1:-1]] == ["root_port", "upstream", "downstream"]
    assert [bridges[part]["acs"] for part in first["path"][1:-1]] == [0x1D, None, 0x1D]
    assert fact["iommu"] == {"units": ["dmar0"], "arguments": ["iommu=pt"]}
    assert (fact["recorded"], fact["virtual"], fact["guests"]) == (False, False, {"devices": [], "mediated": []})
    assert codes(fact) == []


def test_a_host_without_gpus(tmp_path):
    fact = pcie.read_pcie(tree(tmp_path, {"/proc/cmdline": "ro\n"}))
    assert (fact["devices"], fact["bridges"], codes(fact)) == ([], {}, [])


@pytest.mark.parametrize("kind", ["DMA", "DMA-FQ"])
def test_an_iommu_that_translates(tmp_path, kind):
    fact = pcie.read_pcie(helper.record(machines.a40_pcie(), tmp_path, iommu=kind))
    assert codes(fact) == ["pcie_translated"]
    assert len(pcie.refusals(fact)[0]["detail"]["devices"]) == 5


def test_a_kernel_that_does_not_tell_the_type(tmp_path):
    made = helper.record(machines.a40_pcie(), tmp_path)
    for place in tmp_path.glob("sys/kernel/iommu_groups/*/type"):
        place.unlink()
    assert codes(pcie.read_pcie(made)) == ["pcie_iommu_unknown"]


def test_without_an_iommu_nothing_translates(tmp_path):
    assert codes(pcie.read_pcie(helper.record(machines.a40_pcie(), tmp_path, iommu=None))) == []


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ("vfio-pci", ["pcie_held_for_guests"]), ("mlx5_vfio_pci", ["pcie_held_for_guests"]),
        ("nvgrace_gpu_vfio_pci", ["pcie_held_for_guests"]), ("pci-stub", ["pcie_held_for_guests"]),
        ("xen-pciback", ["pcie_held_for_guests"]), ("nvidia", []), ("nvme", []),
    ],
)  # fmt: skip
def test_a_device_that_is_held_for_a_guest(tmp_path, driver, expected):
    made = helper.record(machines.a40_pcie(), tmp_path)
    helper.bind(tmp_path, "0000:f0:00.0", driver)
    fact = pcie.read_pcie(made)
    assert codes(fact) == expected and fact["guests"]["devices"] == (["0000:f0:00.0"] if expected else [])


def test_a_mediated_device(tmp_path):
    made = helper.record(machines.a40_pcie(), tmp_path)
    tree(tmp_path, {"/sys/bus/mdev/devices/83b8f4f2/x": ""})
    assert codes(pcie.read_pcie(made)) == ["pcie_mediated"]


@pytest.mark.parametrize("cpuinfo", ["flags\t\t: fpu hypervisor avx\n", "flags\t\t: fpu avx\n"])
def test_a_virtual_machine_that_shows_no_bridge(tmp_path, cpuinfo):
    whole = machines.a40_pcie()
    gpus = tuple(replace(gpu, path=("pci0000:00", f"0000:00:0{number + 5}.0")) for number, gpu in enumerate(whole.gpus))
    made = helper.record(replace(whole, gpus=gpus, nics=()), tmp_path)
    tree(tmp_path, {"/proc/cpuinfo": cpuinfo})
    fact = pcie.read_pcie(made)
    assert codes(fact) == ["pcie_no_bridge"]
    assert fact["virtual"] is ("hypervisor" in cpuinfo)


@pytest.mark.parametrize(
    ("control", "expected"),
    [(0x00, False), (0x01, False), (0x10, False), (0x04, True), (0x08, True), (0x20, True), (0x1D, True)],
)
def test_what_redirects_at_a_bridge(tmp_path, control, expected):
    """As pci_bridge_has_acs_redir() of Linux has it."""
    helper.record(machines.a40_pcie(), tmp_path, acs=control)
    assert sysfs.read_acs_redirect(FileTree(str(tmp_path / "sys")), "0000:16:02.0") is expected


def test_registers_of_bridges_and_adapters_only(tmp_path):
    fact = pcie.read_pcie(helper.record(machines.a40_pcie(), tmp_path))
    assert len(fact["bridges"]) == 5
    assert pcie.registers(fact) == [pcie.acs_register(address) for address in sorted(fact["bridges"])] + [
        pcie.read_request_register("0000:18:00.0")
    ]
