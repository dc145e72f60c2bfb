# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read everything a scratch is decided by, and what verify compares."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import grp
import os
import pwd
import stat

from ..host.services import is_container
from . import disks, tables
from .config_lines import FSTAB
from .users import users

DRACUT = "/usr/bin/dracut"
UPDATE_INITRAMFS = "/usr/sbin/update-initramfs"
TIMER_LINK = "/etc/systemd/system/timers.target.wants/fstrim.timer"
# The packages' names are the same on all supported distributions.
TOOLS = {"xfsprogs": "mkfs.xfs", "mdadm": "mdadm"}
PROGRAM_DIRECTORIES = ("/usr/sbin", "/sbin")
UNIT_DIRECTORIES = ("/usr/lib/systemd/system", "/lib/systemd/system", "/etc/systemd/system")


def read(tree, run, named, mount_point, is_free=disks.is_free):
    """Return the disks, arrays, mounts and files that are there; run, is_free: as read_disks takes them."""
    found = disks.read_disks(tree, run, is_free)
    mounts = tables.parse_mounts(tree.text("/proc/self/mountinfo"))
    mounted = next((one for one in reversed(mounts) if one["point"] == mount_point), None)
    directory = read_directory(tree, mount_point)
    return {
        "container": is_container(tree),
        "disks": found,
        "named": {path: disks.resolve(tree, path) for path in named},
        "arrays": [read_array(tree, name, run) for name in tree.names(disks.BLOCK) if name.startswith("md")],
        "mounted": mounted,
        "directory": directory,
        "owner": owner_name(directory),
        "users": users(tree, mount_point, mounted["number"]) if mounted else [],
        "fstab": whole(tree, FSTAB),
        "mdadm_conf": read_mdadm_conf(tree),
        "initramfs": initramfs_command(tree),
        "trim": read_timer(tree),
        "missing": [one for one in sorted(TOOLS) if not has_program(tree, TOOLS[one])],
    }


def has_program(tree, name):
    """Return True if a program of the system is installed."""
    return any(tree.exists("%s/%s" % (place, name)) for place in PROGRAM_DIRECTORIES)


def read_array(tree, name, run):
    """Return one md array."""
    place, device = "%s/%s" % (disks.BLOCK, name), "/dev/" + name
    text = run(["wipefs", "--parsable", device])
    return {
        "name": name,
        "device": device,
        "number": tree.text(place + "/dev"),
        "members": tree.names(place + "/slaves"),
        "level": tree.text(place + "/md/level"),
        "running": tree.text(place + "/md/array_state") not in (None, "clear", "inactive"),
        "signatures": None if text is None else tables.parse_wipefs(text),
    }


def read_directory(tree, path):
    """Return {uid, gid, mode, names, is_directory}; None where nothing is."""
    try:
        status = os.stat(tree.path(tree.resolve(path)))
    except OSError:
        return None
    mode = "%04o" % stat.S_IMODE(status.st_mode)
    return {
        "uid": status.st_uid, "gid": status.st_gid, "mode": mode, "names": tree.names(path),
        "is_directory": stat.S_ISDIR(status.st_mode),
    }  # fmt: skip


def owner_name(directory):
    """Return user:group of a directory by name, or by number where it has none."""
    if directory is None:
        return None
    names = []
    for look_up, number in ((pwd.getpwuid, directory["uid"]), (grp.getgrgid, directory["gid"])):
        try:
            names.append(look_up(number)[0])
        except KeyError:
            names.append(str(number))
    return ":".join(names)


def read_mdadm_conf(tree):
    """Return {path, text} of the file that mdadm reads, and that early user space gets: Debian has its own place."""
    debian = tree.is_directory("/etc/mdadm") or tree.exists("/etc/debian_version")
    path = "/etc/mdadm/mdadm.conf" if debian else "/etc/mdadm.conf"
    return {"path": path, "text": whole(tree, path)}


def initramfs_command(tree):
    """Return the command that rebuilds early user space for every kernel; None where there is none."""
    if is_container(tree):
        return None
    if tree.exists(UPDATE_INITRAMFS):
        return ["update-initramfs", "-u", "-k", "all"]
    return ["dracut", "--force", "--regenerate-all"] if tree.exists(DRACUT) else None


def read_timer(tree):
    """Return True if the timer that trims is enabled; None where there is none."""
    if not any(tree.exists(place + "/fstrim.timer") for place in UNIT_DIRECTORIES):
        return None
    return tree.exists(TIMER_LINK)


def whole(tree, path):
    """Return a file's text with every character, None where there is none."""
    try:
        with open(tree.path(path), "rb") as stream:
            return stream.read().decode("utf-8", "surrogateescape")
    except (IOError, OSError):
        return None
