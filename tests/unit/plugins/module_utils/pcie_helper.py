# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration spaces written by the PCI Express specification, with the offsets of Linux's uapi/linux/pci_regs.h, on recorded machines.

They are laid out as lspci -xxxx shows real ones: power management at 0x40, PCI Express at 0x60, advanced error reporting at 0x100,
and behind it, at 0x150, Access Control Services.
"""

import struct
from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.lab.nvml import recording

ENDPOINT, ROOT_PORT, UPSTREAM, DOWNSTREAM = 0x0, 0x4, 0x5, 0x6
EXPRESS, ACS = 0x60, 0x150
# What Linux sets with an IOMMU: source validation, both redirections, upstream forwarding (drivers/pci/pci.c, pci_std_enable_acs).
LINUX_ACS = 0x1D
SOURCE_VALIDATION = 0x01


def space(port=ENDPOINT, acs=None, width=(16, 16), generation=(4, 4), read_request=512, payload=256):
    """Return 4096 bytes. width, generation: (now, at most)."""
    found = bytearray(4096)
    struct.pack_into("<H", found, 0x06, 0x0010)
    found[0x34] = 0x40
    struct.pack_into("<BBH", found, 0x40, 0x01, EXPRESS, 0x0003)
    control = (read_request // 128).bit_length() - 1 << 12 | (payload // 128).bit_length() - 1 << 5 | 0x0010
    struct.pack_into("<BBHIH", found, EXPRESS, 0x10, 0x00, port << 4 | 2, 0x00008FE2, control)
    struct.pack_into("<I", found, EXPRESS + 0x0C, width[1] << 4 | generation[1])
    struct.pack_into("<H", found, EXPRESS + 0x12, width[0] << 4 | generation[0] | 0x1000)
    struct.pack_into("<I", found, 0x100, 0x0001 | 2 << 16 | (0 if acs is None else ACS << 20))
    if acs is not None:
        struct.pack_into("<IHH", found, ACS, 0x000D | 1 << 16, 0x005F, acs)
    return bytes(found)


def record(machine, root: Path, acs=LINUX_ACS, iommu="identity", spaces=None, arguments="ro iommu=pt") -> FileTree:
    """Write a machine's trees with the space of each device and bridge.

    acs: control of every downstream and root port; iommu: type of every group, None for a kernel without; spaces: {address: bytes}.
    """
    recording.write_sysfs(machine, root / "sys")
    (root / "proc").mkdir()
    (root / "proc" / "cmdline").write_text(arguments + "\n")
    paths = [one.path for one in (*machine.gpus, *machine.nics)]
    known = {}
    for path in paths:
        for number, address in enumerate(path[1:], 1):
            is_end = number == len(path) - 1
            port = ENDPOINT if is_end else ROOT_PORT if number == 1 else (UPSTREAM, DOWNSTREAM)[number % 2]
            known[address] = space(port, acs if port in (ROOT_PORT, DOWNSTREAM) else None)
            place = root / "sys" / "bus" / "pci" / "devices" / address
            home = root / "sys" / "devices" / Path(*path[: number + 1])
            if not place.is_symlink():
                recording.link(place, home)
            (home / "config").write_bytes((spaces or {}).get(address, known[address]))
    for number, address in enumerate(path[-1] for path in paths if iommu):
        groups = root / "sys" / "kernel" / "iommu_groups" / str(number)
        recording.write(groups, {"type": iommu + "\n"})
        recording.link(root / "sys" / "bus" / "pci" / "devices" / address / "iommu_group", groups)
    if iommu:
        (root / "sys" / "class" / "iommu" / "dmar0").mkdir(parents=True)
    return FileTree(str(root))


def bind(root: Path, address: str, driver: str) -> None:
    """Bind a device to a driver; the device is made where it is not there."""
    place = root / "sys" / "bus" / "pci" / "devices" / address
    place.mkdir(parents=True, exist_ok=True)
    recording.link(place / "driver", root / "sys" / "bus" / "pci" / "drivers" / driver)
