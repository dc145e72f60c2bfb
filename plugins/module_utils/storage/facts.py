# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say what a node has of its scratch, as the fact gpu_scratch."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .blank import sightings
from .choice import choose
from .plan import device_of, is_filesystem


def scratch_fact(wanted, seen, record, recorded):
    """Return the fact; wanted: {disks, count, minimum, mount_point}, seen: as reading.read tells it.

    left: why the node gets no scratch, refused: what keeps it from one, packages: what making it needs and is not there.
    """
    choice = choose(wanted, seen, record)
    expected = len(record["disks"]) if record else len(choice["disks"])
    array = bool(record and record["array"])
    device = device_of(seen, record, choice["disks"]) if record and choice["disks"] and not choice["blank"] else None
    return {
        "container": seen["container"],
        "recorded": recorded,
        "left": choice["left"],
        "refused": choice["problems"],
        "disks": [_disk(one, seen["disks"], choice["disks"]) for one in seen["disks"] if one["kind"] != "loop" or one in choice["disks"]],
        "expected": expected,
        "members": [] if choice["blank"] else [one["device"] for one in choice["disks"]],
        "array": "/dev/md/" + record["array"]["name"] if array else None,
        "device": device["device"] if device else None,
        "mounted": _mounted(seen, record, device),
        "trim": seen["trim"],
        "packages": _packages(seen, expected) if choice["disks"] else [],
    }  # fmt: skip


def _packages(seen, count):
    needed = ["xfsprogs"] + (["mdadm"] if count > 1 else [])
    return [one for one in needed if one in seen["missing"]]


def _disk(disk, disks, taken):
    against = sightings(disk, disks)
    kept = {key: disk[key] for key in ("device", "kind", "size", "model", "serial")}
    return dict(kept, taken=disk in taken, seen=against)


def _mounted(seen, record, device):
    """Return the mount at the mount point; ours: it is the file system of the record on its device."""
    mounted = seen["mounted"]
    if mounted is None:
        return None
    ours = bool(device) and mounted["number"] == device["number"]
    ours = ours and any(is_filesystem(one, record) for one in device["signatures"] or [])
    return {
        "source": mounted["source"], "type": mounted["type"], "options": mounted["options"], "ours": ours,
        "owner": seen["owner"], "mode": seen["directory"]["mode"] if seen["directory"] else None,
    }  # fmt: skip
