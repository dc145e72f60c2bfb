# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find who uses a mounted file system: processes with files in it, mounts over and next to it, other mount namespaces."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import tables


def users(tree, point, number):
    """Return sentences' parts, one for each user of the file system with this device number that is mounted at ``point``."""
    own = tree.link("/proc/self/ns/mnt")
    mounts = tables.parse_mounts(tree.text("/proc/self/mountinfo"))
    found = []
    for one in mounts:
        if one["point"].startswith(point + "/") or (one["number"] == number and one["point"] != point):
            found.append("mount %s" % one["point"])
    group = _above(mounts, point).get("shared")
    unmounts = {own: True}  # namespace -> whether an unmount here is one there
    for pid in (name for name in tree.names("/proc") if name.isdigit()):
        namespace = tree.link("/proc/%s/ns/mnt" % pid)
        if namespace not in unmounts:
            there = tables.parse_mounts(tree.text("/proc/%s/mountinfo" % pid))
            points = [one["point"] for one in there if one["number"] == number]
            unmounts[namespace] = points == [point] and group in _above(there, point).values()
            if points and not unmounts[namespace]:
                found.append("mount namespace of process %s (%s)" % (pid, tree.text("/proc/%s/comm" % pid)))
        if unmounts[namespace] and is_inside(tree, pid, point):
            found.append("process %s (%s)" % (pid, tree.text("/proc/%s/comm" % pid)))
    return found


def _above(mounts, point):
    """Return the peer groups of the mount that has ``point``.

    What is unmounted on it is unmounted on all of its group, and on those that have it as master, such as the namespaces of systemd's
    services (Documentation/filesystems/sharedsubtree.rst).
    """
    parents = [one["parent"] for one in mounts if one["point"] == point]
    return next((one["groups"] for one in mounts if one["id"] in parents), {})


def is_inside(tree, pid, point):
    """Return True if a process has a file, its directory, its program or a mapped file there."""
    place = "/proc/" + pid
    links = [place + "/" + name for name in ("cwd", "root", "exe")]
    links += [
        "%s/%s/%s" % (place, kind, name) for kind in ("fd", "map_files") for name in tree.names(place + "/" + kind)
    ]
    return any((target + "/").startswith(point + "/") for target in map(tree.link, links) if target)
