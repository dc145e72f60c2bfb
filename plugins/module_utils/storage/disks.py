# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the whole disks of a machine, and everything that says what is on each of them or uses it."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import os

from . import tables

BLOCK = "/sys/block"
SECTOR = 512  # /sys/block/*/size counts in these, whatever the disk's own sectors are
# RAM, optical, floppy and network block devices, and what is made of other devices, are not disks.
NO_DISKS = ("ram", "zram", "sr", "fd", "nbd", "dm-", "md", "rbd", "drbd", "bcache", "zd", "mtdblock", "ublkb")
LSBLK = ["lsblk", "-J", "-b", "-O"]


def read_disks(tree, run, is_free=lambda path: True):
    """Return every whole disk, loop devices with a file among them.

    ``run`` takes an argument list and returns the program's output, or None where it fails; ``is_free(path)`` tells whether
    the kernel would give the device to a program that wants it exclusively, None where it cannot be opened.
    """
    names = [name for name in tree.names(BLOCK) if is_disk(tree, name)]
    listed = tables.lsblk_devices(run(LSBLK))
    mounts = tables.parse_mounts(tree.text("/proc/self/mountinfo"))
    swaps = tables.parse_swaps(tree.text("/proc/swaps"))
    return [read_disk(tree, name, listed, mounts, swaps, run, is_free) for name in names]


def is_disk(tree, name):
    """Return True if it is a disk that can have data: no path of a multipath namespace, no loop device without a file."""
    place = "%s/%s" % (BLOCK, name)
    if name.startswith(NO_DISKS) or tree.text(place + "/hidden") == "1":
        return False
    return not name.startswith("loop") or bool(tree.number(place + "/size"))


def read_disk(tree, name, listed, mounts, swaps, run, is_free):
    """Return one disk as a plain value; ``signatures`` and ``free`` are None where that is not known."""
    place, device = "%s/%s" % (BLOCK, name), "/dev/" + name
    partitions = [entry for entry in tree.names(place) if tree.exists("%s/%s/partition" % (place, entry))]
    numbers = {tree.text("%s/%s/dev" % (place, one)) for one in partitions} | {tree.text(place + "/dev")}
    ours = {device} | {"/dev/" + one for one in partitions}
    text = run(["wipefs", "--parsable", device])
    return {
        "name": name,
        "device": device,
        "kind": "nvme" if name.startswith("nvme") else "loop" if name.startswith("loop") else "disk",
        "size": (tree.number(place + "/size") or 0) * SECTOR,
        "model": _word(tree.text(place + "/device/model")),
        "serial": _word(tree.text(place + "/device/serial")),
        "wwid": _word(tree.text(place + "/wwid")),
        "number": tree.text(place + "/dev"),
        "transport": transport(tree, place),
        "paths": max(len(controllers(tree, place)), 1),
        "read_only": tree.text(place + "/ro") == "1",
        "removable": tree.text(place + "/removable") == "1",
        "zoned": tree.text(place + "/queue/zoned") not in (None, "none"),
        "partitions": partitions,
        "holders": sorted({one for at in [""] + partitions for one in read_holders(tree, place, at)}),
        "mounts": sorted({one["point"] for one in mounts if one["number"] in numbers or one["source"] in ours}),
        "swap": sorted(ours & swaps),
        "signatures": None if text is None else tables.parse_wipefs(text),
        "children": sorted(listed.get(name, [])),
        "free": is_free(tree.path(device)),
    }


def read_holders(tree, place, partition):
    """Return the devices that are made of a disk or of a partition of it: {name} with the kind that device mapper says."""
    found = []
    for holder in tree.names("%s/%s/holders" % (place, partition)):
        uuid = tree.text("%s/%s/dm/uuid" % (BLOCK, holder)) or ""
        kind = uuid.partition("-")[0].lower()
        found.append("%s (%s)" % (holder, kind) if kind else holder)
    return found


def controllers(tree, place):
    """Return the controllers of the NVMe subsystem that a namespace is in; none where a single one owns it."""
    names = [name for name in tree.names(place + "/device") if name.startswith("nvme") and name[4:].isdigit()]
    return [name for name in names if tree.exists("%s/device/%s/address" % (place, name))]


def transport(tree, place):
    """Return the transport of an NVMe disk, such as pcie or tcp; None for another disk."""
    found = [tree.text("%s/device/%s/transport" % (place, name)) for name in controllers(tree, place)]
    return _word(next(iter(found), None) or tree.text(place + "/device/transport"))


def is_free(path):
    """Return True if no other program holds a device; None where it cannot be opened."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
    except (IOError, OSError) as error:
        return False if error.errno == errno.EBUSY else None
    return True


def resolve(tree, path):
    """Return the name of the disk that a path such as /dev/disk/by-id/… leads to; None where it leads to none."""
    directory, dummy, name = tree.resolve(path).rpartition("/")
    return name if directory == "/dev" and tree.exists("%s/%s" % (BLOCK, name)) else None


def _word(text):
    return (text or "").strip() or None
