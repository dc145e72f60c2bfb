# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask NVMe drives for their SMART / Health Information log (log page 02h); starts no program and changes nothing.

Layout: include/linux/nvme.h, struct nvme_smart_log; the question: include/uapi/linux/nvme_ioctl.h, struct nvme_passthru_cmd. Root alone may
ask (CAP_SYS_ADMIN: drivers/nvme/host/ioctl.c).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import ctypes
import errno
import fcntl
import json
import os
import struct

from ..machine.child import bounded

# Of a recorded machine, below sysfs: {drive: {page, refused}}, which is not a file on the node.
RECORDED = "/nvme_log.json"
ADMIN_CMD = 0xC0484E41  # _IOWR('N', 0x41, struct nvme_admin_cmd), on x86 and on Arm
COMMAND = struct.Struct("=BBHIIIQQ10I")
GET_LOG_PAGE, SMART, SIZE, ALL_NAMESPACES = 0x02, 0x02, 512, 0xFFFFFFFF
# It went while it was asked.
NOT_HERE = (errno.ENOENT, errno.ENXIO, errno.ENODEV)
NOT_ALLOWED = (errno.EACCES, errno.EPERM)
# Until a drive counts as one that does not answer. The kernel goes on to wait for its own minute: a command with a shorter time of its
# own would make it reset the controller (drivers/nvme/host/pci.c, nvme_timeout).
SECONDS = 10


def read_nvme(sys_tree):
    """Return [{``name``, ``page``: the log in hexadecimal digits, or None, ``refused``: None, or why}] of the drives on PCIe that work."""
    if sys_tree.root != "/sys":
        answers = json.loads(sys_tree.text(RECORDED) or "{}")
        return [dict(answers[name], name=name) for name in sorted(answers)]
    names = [name for name in sys_tree.names("/class/nvme") if is_asked(sys_tree, name)]
    said, dummy_ending = bounded(lambda say: [say(ask(name)) for name in names], SECONDS) if names else ([], None)
    answers = dict(said)
    found = [dict(answers.get(name, answer(None, "no answer")), name=name) for name in names]
    return [one for one in found if one["refused"] != "absent"]


def is_asked(tree, name):
    """Return True if a controller is a drive of this machine, and works; check disks says of one that does not."""
    texts = [tree.text("/class/nvme/%s/%s" % (name, key)) for key in ("transport", "state")]
    return texts[0] in (None, "pcie") and texts[1] in (None, "live")


def ask(name):
    """Return [name, its answer]."""
    try:
        descriptor = os.open("/dev/" + name, os.O_RDONLY)
    except (IOError, OSError) as error:
        return [name, answer(None, "absent" if error.errno in NOT_HERE else reason(error))]
    try:
        page = ctypes.create_string_buffer(SIZE)
        status = fcntl.ioctl(descriptor, ADMIN_CMD, command(ctypes.addressof(page)), True)
    except (IOError, OSError) as error:
        return [name, answer(None, reason(error))]
    finally:
        os.close(descriptor)
    if status:
        return [name, answer(None, "status 0x%x" % status)]
    return [name, answer(page.raw.hex(), None)]


def command(address):
    """Return struct nvme_passthru_cmd for the page, which the kernel puts where ``address`` says."""
    words = SIZE // 4 - 1
    return bytearray(
        COMMAND.pack(
            GET_LOG_PAGE, 0, 0, ALL_NAMESPACES, 0, 0, 0, address, 0, SIZE, words << 16 | SMART, 0, 0, 0, 0, 0, 0, 0
        )
    )


def reason(error):
    return "permission" if error.errno in NOT_ALLOWED else errno.errorcode.get(error.errno, "error %s" % error.errno)


def answer(page, refused):
    return {"page": page, "refused": refused}
