# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration space of a PCI device: what it says, and single bits of it. Names and numbers as in Linux's uapi/linux/pci_regs.h."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re
import struct

PCI_CFG_SPACE_SIZE = 0x100  # where extended capabilities begin; only root reads further than 64 bytes
PCI_CFG_SPACE_EXP_SIZE = 0x1000
PCI_STATUS, PCI_STATUS_CAP_LIST = 0x06, 0x10
PCI_CAPABILITY_LIST = 0x34
PCI_STD_HEADER_SIZEOF = 0x40
PCI_CAP_ID_EXP = 0x10
PCI_EXP_FLAGS, PCI_EXP_FLAGS_TYPE = 0x02, 0x00F0
PCI_EXP_DEVCTL = 0x08
PCI_EXP_DEVCTL_RELAX_EN, PCI_EXP_DEVCTL_PAYLOAD, PCI_EXP_DEVCTL_READRQ = 0x0010, 0x00E0, 0x7000
PCI_EXP_LNKCAP, PCI_EXP_LNKCAP_SLS, PCI_EXP_LNKCAP_MLW = 0x0C, 0x0F, 0x03F0
PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_CLS, PCI_EXP_LNKSTA_NLW = 0x12, 0x0F, 0x03F0
PCI_EXT_CAP_ID_ACS = 0x0D
PCI_ACS_CAP, PCI_ACS_CTRL = 0x04, 0x06
PCI_ACS_SV, PCI_ACS_TB, PCI_ACS_RR, PCI_ACS_CR, PCI_ACS_UF, PCI_ACS_EC, PCI_ACS_DT = 1, 2, 4, 8, 0x10, 0x20, 0x40
# Any of these sends traffic between devices upwards: pci_bridge_has_acs_redir() in drivers/pci/p2pdma.c.
ACS_REDIRECT = PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC
ACS_NAMES = (
    (PCI_ACS_SV, "SrcValid"), (PCI_ACS_TB, "TransBlk"), (PCI_ACS_RR, "ReqRedir"), (PCI_ACS_CR, "CmpltRedir"),
    (PCI_ACS_UF, "UpstreamFwd"), (PCI_ACS_EC, "EgressCtrl"), (PCI_ACS_DT, "DirectTrans"),
)  # fmt: skip
PORTS = {
    0x0: "endpoint", 0x1: "legacy_endpoint", 0x4: "root_port", 0x5: "upstream", 0x6: "downstream", 0x7: "pci_bridge",
    0x8: "pcie_bridge", 0x9: "integrated_endpoint",
}  # fmt: skip

# A register as setpci(8) writes it, with the bits that count: CAP_EXP+08.w:7000.
REGISTER = r"^(/sys/.+/config)#(CAP_EXP|ECAP_ACS)\+([0-9a-f]{2})\.w:([0-9a-f]{4})$"
ACS_CONTROL = "ECAP_ACS+%02x.w:%04x" % (PCI_ACS_CTRL, ACS_REDIRECT)
READ_REQUEST = "CAP_EXP+%02x.w:%04x" % (PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_READRQ)


def load(path, size=PCI_CFG_SPACE_EXP_SIZE):
    """Return the first bytes of a configuration space, as far as this user reads them; empty where there is none.

    Each four are a question to the device, which a virtual machine's hypervisor answers: 4096 took 22 ms of an H100's guest. So the file
    has no buffer, which would be filled.
    """
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read(size)
    except (IOError, OSError):
        return b""


def word(space, offset):
    """Return a register of two bytes; None beyond the end, and where a device that is gone answers with ones only."""
    if offset is None or offset + 2 > len(space):
        return None
    value = struct.unpack_from("<H", space, offset)[0]
    return None if value == 0xFFFF else value


def find_capability(space, wanted=PCI_CAP_ID_EXP):
    """Return the offset of a capability, or None."""
    status = word(space, PCI_STATUS)
    if len(space) <= PCI_STD_HEADER_SIZEOF or status is None or not status & PCI_STATUS_CAP_LIST:
        return None
    content, seen = bytearray(space), set()
    offset = content[PCI_CAPABILITY_LIST] & 0xFC
    while PCI_STD_HEADER_SIZEOF <= offset <= len(content) - 2 and offset not in seen:
        seen.add(offset)
        if content[offset] == wanted:
            return offset
        offset = content[offset + 1] & 0xFC
    return None


def find_extended(space, wanted=PCI_EXT_CAP_ID_ACS):
    """Return the offset of an extended capability, or None."""
    offset, seen = PCI_CFG_SPACE_SIZE, set()
    while PCI_CFG_SPACE_SIZE <= offset <= len(space) - 8 and offset not in seen:
        seen.add(offset)
        header = struct.unpack_from("<I", space, offset)[0]
        if header & 0xFFFF == wanted:
            return offset
        offset = header >> 20 & 0xFFC
    return None


def describe(space):
    """Return {readable, port, acs, read_request, payload, relaxed_ordering, link} of a configuration space.

    ``readable``: far enough for ACS; ``acs``: its control register, None without the capability; sizes are bytes; ``link``:
    {width, max_width, generation, max_generation}, None where the device has no link.
    """
    express = find_capability(space)
    control = word(space, None if express is None else express + PCI_EXP_DEVCTL)
    extended = find_extended(space)
    return {
        "readable": len(space) > PCI_CFG_SPACE_SIZE,
        "port": None if express is None else PORTS.get((word(space, express + PCI_EXP_FLAGS) or 0) >> 4 & 0xF),
        "acs": word(space, None if extended is None else extended + PCI_ACS_CTRL),
        "read_request": None if control is None else size(control, PCI_EXP_DEVCTL_READRQ),
        "payload": None if control is None else size(control, PCI_EXP_DEVCTL_PAYLOAD),
        "relaxed_ordering": None if control is None else bool(control & PCI_EXP_DEVCTL_RELAX_EN),
        "link": _link(space, express),
    }


def size(control, mask):
    """Return a size of Device Control in bytes: 0 stands for 128, and each step doubles it."""
    return 128 << (control & mask) // (mask & -mask)


def encoded(count, mask=PCI_EXP_DEVCTL_READRQ):
    """Return the bits of Device Control for a size in bytes."""
    return (count // 128).bit_length() - 1 << (mask & -mask).bit_length() - 1


def _link(space, express):
    if express is None:
        return None
    able, now = word(space, express + PCI_EXP_LNKCAP), word(space, express + PCI_EXP_LNKSTA)
    if able is None or now is None or not able & PCI_EXP_LNKCAP_MLW:
        return None
    return {
        "width": (now & PCI_EXP_LNKSTA_NLW) >> 4 or None,
        "max_width": (able & PCI_EXP_LNKCAP_MLW) >> 4,
        "generation": now & PCI_EXP_LNKSTA_CLS or None,
        "max_generation": able & PCI_EXP_LNKCAP_SLS,
    }


def acs_names(control):
    """Return the names of the bits that are set, as lspci(8) shows them."""
    return [name for bit, name in ACS_NAMES if control & bit]


def is_register(path):
    """Return True if a path names a register in place of a file."""
    return re.match(REGISTER, path) is not None


def read_register(tree, path):
    """Return the bits that count of a register as four hexadecimal digits; None where the device does not have it."""
    dummy, found, mask = _place(tree, path)
    return None if found is None else "%04x" % (found[1] & mask)


def write_register(tree, path, text):
    """Write the bits that count and leave the others, in one access of two bytes; OSError where the kernel refuses it."""
    place, found, mask = _place(tree, path)
    if found is None:
        raise EnvironmentError(19, "No such register")
    offset, value = found
    number = os.open(place, os.O_RDWR)
    try:
        os.lseek(number, offset, os.SEEK_SET)
        os.write(number, struct.pack("<H", value & ~mask & 0xFFFF | int(text, 16) & mask))
    finally:
        os.close(number)


def _place(tree, path):
    """Return (path on this machine's disk, (offset, value) or None, mask)."""
    file, capability, add, mask = re.match(REGISTER, path).groups()
    place = tree.path(tree.resolve(file))
    space = load(place)
    begin = find_capability(space) if capability == "CAP_EXP" else find_extended(space)
    offset = None if begin is None else begin + int(add, 16)
    value = word(space, offset)
    return place, None if value is None else (offset, value), int(mask, 16)
