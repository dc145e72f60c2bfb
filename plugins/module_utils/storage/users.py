# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find who uses a mounted file system: processes with files in it, mounts over and beside it, other mount namespaces."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import tables


def users(tree, point, number):
    """Return sentences' parts, one for each user of the file system with this device number that is mounted at ``point``."""
    own = tree.link("/proc/self/ns/mnt")
    found = []
    for one in tables.parse_mounts(tree.text("/proc/self/mountinfo")):
        if one["point"].startswith(point + "/") or (one["number"] == number and one["point"] != point):
            found.append("mount %s" % one["point"])
    namespaces = {own}
    for pid in (name for name in tree.names("/proc") if name.isdigit()):
        namespace = tree.link("/proc/%s/ns/mnt" % pid)
        if namespace == own and is_inside(tree, pid, point):
            found.append("process %s (%s)" % (pid, tree.text("/proc/%s/comm" % pid)))
        elif namespace not in namespaces and number in _numbers(tree, pid):
            namespaces.add(namespace)
            found.append("mount namespace of process %s (%s)" % (pid, tree.text("/proc/%s/comm" % pid)))
    return found


def is_inside(tree, pid, point):
    """Return whether a process has a file, its directory, its program or a mapped file there."""
    place = "/proc/" + pid
    links = [place + "/" + name for name in ("cwd", "root", "exe")]
    links += [
        "%s/%s/%s" % (place, kind, name) for kind in ("fd", "map_files") for name in tree.names(place + "/" + kind)
    ]
    return any((target + "/").startswith(point + "/") for target in map(tree.link, links) if target)


def _numbers(tree, pid):
    return {one["number"] for one in tables.parse_mounts(tree.text("/proc/%s/mountinfo" % pid))}
