# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask file systems that others mounted whether they answer: a process that asks one whose server is gone waits in the kernel until it is back."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import os
import pwd
import threading

from ..machine.child import bounded
from .tables import parse_mounts

# systemd, src/basic/mountpoint-util.c, fstype_is_network, and what is common in clusters beside it; FUSE's names lose their "fuse.".
KINDS = frozenset((
    "afs", "ceph", "ceph-fuse", "cifs", "davfs", "gfs2", "glusterfs", "lustre", "nfs", "nfs4", "ocfs2", "orangefs", "smb3", "sshfs",
    "beegfs", "beegfs_nodev", "gpfs", "juicefs", "panfs", "wekafs",
))  # fmt: skip
# Until a file system counts as one that does not answer. One that works takes milliseconds, a server that fails over up to a minute.
SECONDS = 5
SILENT = "silent"


def is_network(kind):
    return (kind[len("fuse.") :] if kind.startswith("fuse.") else kind) in KINDS


def visible(tree):
    """Return {path: mount} of what is seen at each mount point: what was mounted there last. tree: of /proc."""
    return {one["point"]: one for one in parse_mounts(tree.text("/self/mountinfo"))}


def read_network_mounts(tree):
    """Return [{point, type, source, fault}] of the network file systems, by path; tree: of /proc.

    fault: None where it answers, else silent, or the name of its error, such as ESTALE. One that is at several paths is asked once.
    """
    mounts = {
        one["number"]: one for dummy, one in sorted(visible(tree).items(), reverse=True) if is_network(one["type"])
    }
    found = sorted(mounts.values(), key=lambda mount: mount["point"])
    answers = ask([one["point"] for one in found])
    return [
        {
            "point": one["point"],
            "type": one["type"],
            "source": one["source"],
            "fault": answers[one["point"]]["error"] if one["point"] in answers else SILENT,
        }
        for one in found
    ]


def probe_mounts(tree, points, user):
    """Return {path: {type, source, silent, error, free, size, writable}} of paths, None where nothing is mounted.

    tree: of /proc; user: the one who asks, see ask. They are asked first: that is what an automounter waits for.
    """
    answers, mounts, found = ask(points, user), visible(tree), {}
    for point in points:
        one, answer = mounts.get(os.path.normpath(point)), answers.get(point)
        nothing = {"error": None, "free": None, "size": None, "writable": None}
        found[point] = one and dict(answer or nothing, type=one["type"], source=one["source"], silent=answer is None)
    return found


def ask(points, user=None, seconds=SECONDS):
    """Return {path: {error, free, size, writable}} of those that answer in time; free and size in bytes.

    writable: whether the user may make files there, None without one; it is the user who asks, where this process may become it.
    """
    if not points:
        return {}
    said, dummy_ending = bounded(lambda say: _ask_all(points, user, say), seconds)
    return dict(said)


def _ask_all(points, user, say):
    """Say what each answers, in its own thread: of those that wait, none keeps another one waiting."""
    if user is not None and os.geteuid() == 0:
        account = pwd.getpwnam(user)
        os.initgroups(user, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    threads = [threading.Thread(target=lambda point=point: say([point, _look(point, user)])) for point in points]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _look(point, user):
    try:
        room = os.statvfs(point)
        writable = None if user is None else os.access(point, os.W_OK | os.X_OK)
    except (IOError, OSError) as error:
        return {"error": errno.errorcode.get(error.errno, "error"), "free": None, "size": None, "writable": None}
    return {
        "error": None,
        "free": room.f_bavail * room.f_frsize,
        "size": room.f_blocks * room.f_frsize,
        "writable": writable,
    }
