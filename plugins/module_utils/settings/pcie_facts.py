# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCIe between GPUs and adapters, as ``ansible_facts.gpu_pcie``: bridges on the way, the IOMMU, and what guests were given."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ..machine import pci_config, sysfs
from ..machine.files import FileTree
from ..machine.problems import problem
from . import tuning_record

RECORD = "pcie"
# Drivers that hold a device for a guest: vfio-pci and its variants, and Xen's.
GUEST_DRIVER = re.compile(r"vfio|^pci-stub$|pciback$")
# Words of /sys/kernel/iommu_groups/*/type: Linux, Documentation/ABI/testing/sysfs-kernel-iommu_groups.
TRANSLATING = ("DMA", "DMA-FQ")


def read_pcie(tree):
    """Return the whole fact."""
    sys_tree = FileTree(tree.path("/sys"))
    found = sysfs.read_pci_devices(sys_tree)
    devices = [
        _device(sys_tree, address, "gpu", None, device["path"])
        for address, device in sorted(found.items())
        if device["kind"] == "gpu"
    ]
    for nic in sysfs.read_nics(sys_tree):
        if nic["pci_bus_id"]:
            devices.append(_device(sys_tree, nic["pci_bus_id"], "nic", nic["name"], nic["path"]))
    bridges = sorted({part for device in devices for part in device["path"][1:-1]})
    return {
        "recorded": tuning_record.load(tree, tuning_record.path_of(RECORD)) is not None,
        "devices": devices,
        "bridges": {address: pci_config.describe(_space(sys_tree, address)) for address in bridges},
        "iommu": read_iommu(tree, sys_tree),
        "guests": read_guests(tree, sys_tree),
        "virtual": is_virtual(tree),
    }


def _space(sys_tree, address):
    return pci_config.load(sys_tree.path(sys_tree.resolve("/bus/pci/devices/%s/config" % address)))


def _device(sys_tree, address, kind, name, path):
    group = (sys_tree.link("/bus/pci/devices/%s/iommu_group" % address) or "").rpartition("/")[2] or None
    mode = sys_tree.text("/kernel/iommu_groups/%s/type" % group) if group else None
    entry = {"address": address, "kind": kind, "name": name, "path": path, "iommu_group": group, "iommu_type": mode}
    return dict(entry, **pci_config.describe(_space(sys_tree, address)))


def read_iommu(tree, sys_tree):
    """Return {units: those that the kernel drives, arguments: of the kernel, those about them}."""
    words = (tree.text("/proc/cmdline") or "").split()
    return {
        "units": sys_tree.names("/class/iommu"),
        "arguments": [one for one in words if "iommu" in one.partition("=")[0]],
    }


def read_guests(tree, sys_tree):
    """Return {devices: addresses of those held for guests, mediated: names of mediated devices, such as of vGPU software}."""
    held = []
    for address in sys_tree.names("/bus/pci/devices"):
        driver = (sys_tree.link("/bus/pci/devices/%s/driver" % address) or "").rpartition("/")[2]
        if GUEST_DRIVER.search(driver):
            held.append(address)
    return {"devices": held, "mediated": sys_tree.names("/bus/mdev/devices")}


def is_virtual(tree):
    """Return True if this is a virtual machine, as far as the processor or the hypervisor says so."""
    flags = re.search(r"(?m)^flags\s*:(.*)$", tree.text("/proc/cpuinfo") or "")
    return bool(flags and "hypervisor" in flags.group(1).split()) or tree.exists("/sys/hypervisor/type")


def refusals(fact):
    """Return [problem]: why redirection by ACS must stay on this node; none where nothing speaks against ending it."""
    found = []
    guests, gpus = fact["guests"], [one for one in fact["devices"] if one["kind"] == "gpu"]
    if guests["devices"]:
        found.append(problem("pcie_held_for_guests", None, devices=guests["devices"]))
    if guests["mediated"]:
        found.append(problem("pcie_mediated", None, devices=guests["mediated"]))
    if gpus and not any(one["path"][1:-1] for one in gpus):
        found.append(problem("pcie_no_bridge", None, virtual=fact["virtual"]))
    translated = [one["address"] for one in fact["devices"] if one["iommu_type"] in TRANSLATING]
    if translated:
        found.append(problem("pcie_translated", None, devices=translated))
    unknown = [one["address"] for one in fact["devices"] if one["iommu_group"] and not one["iommu_type"]]
    if unknown:
        found.append(problem("pcie_iommu_unknown", None, devices=unknown))
    return found


def registers(fact):
    """Return paths of the registers that a role of ours may write on this node: ACS of bridges, and Device Control of adapters."""
    paths = [_register(address, pci_config.ACS_CONTROL) for address in sorted(fact["bridges"])]
    nics = [one["address"] for one in fact["devices"] if one["kind"] == "nic"]
    return paths + [_register(address, pci_config.READ_REQUEST) for address in nics]


def acs_register(address):
    """Return the path of what redirects at a bridge."""
    return _register(address, pci_config.ACS_CONTROL)


def read_request_register(address):
    """Return the path of the largest read request of a device."""
    return _register(address, pci_config.READ_REQUEST)


def _register(address, name):
    return "/sys/bus/pci/devices/%s/config#%s" % (address, name)
