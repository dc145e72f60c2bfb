# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what the kernel says of disks, arrays and file systems, from sysfs alone: no disk is asked, since a broken one may not answer."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

# drivers/nvme/host/sysfs.c; drivers/scsi/scsi_sysfs.c: what a disk is in that does no more work.
GONE = ("dead", "deleting (no IO)", "offline", "transport-offline")


def read_disks(tree):
    """Return [{``name``, ``what``, ``fault``: one of check disks, or None}], by name."""
    return read_controllers(tree) + read_devices(tree) + read_arrays(tree) + read_file_systems(tree)


def read_controllers(tree):
    """Return NVMe controllers; hwmon's alarm is the controller's own warning (drivers/nvme/host/hwmon.c)."""
    found = []
    for name in tree.names("/class/nvme"):
        place = "/class/nvme/" + name
        state = tree.text(place + "/state")
        alarms = [tree.number("%s/%s/temp1_alarm" % (place, one)) for one in monitors(tree, place)]
        code = "dead" if state in GONE else "alarm" if any(alarms) else None
        found.append(entry(name, state, code))
    return found


def monitors(tree, place):
    """Return the places of hardware monitors below a controller; older kernels put them into a directory of their own."""
    direct = [name for name in tree.names(place) if name.startswith("hwmon") and name != "hwmon"]
    return direct + ["hwmon/" + name for name in tree.names(place + "/hwmon")]


def read_devices(tree):
    """Return SCSI and SATA disks."""
    found = []
    for name in tree.names("/block"):
        state = tree.text("/block/%s/device/state" % name) if name.startswith("sd") else None
        if state:
            found.append(entry(name, state, "dead" if state in GONE else None))
    return found


def read_arrays(tree):
    """Return arrays; one without redundancy counts no missing disks, but is broken, or inactive where it was not assembled."""
    found = []
    for name in tree.names("/block"):
        place = "/block/%s/md" % name
        missing, state = tree.number(place + "/degraded"), tree.text(place + "/array_state")
        # A container of the firmware's metadata holds the arrays themselves, and is never active.
        container = (tree.text(place + "/metadata_version") or "").startswith("external:")
        if state == "broken" or (state == "inactive" and not container):
            found.append(entry(name, state, "array"))
        elif missing is not None:
            found.append(entry(name, "%d missing" % missing, "array" if missing else None))
    return found


def read_file_systems(tree):
    """Return ext4's own record; XFS counts nothing that lasts."""
    found = []
    for name in tree.names("/fs/ext4"):
        errors = tree.number("/fs/ext4/%s/errors_count" % name)
        if errors is not None:
            found.append(entry(name, "%d errors" % errors, "file_system" if errors else None))
    return found


def entry(name, state, code):
    return {"name": name, "what": "%s: %s" % (name, state or "?"), "fault": code}
