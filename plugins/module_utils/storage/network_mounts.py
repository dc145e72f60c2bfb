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
from ..machine.procfs import NETWORK_KINDS
from .tables import parse_mounts

# Until a file system counts as one that does not answer. One that works takes milliseconds, a server that fails over up to a minute.
SECONDS = 5
SILENT = "silent"


def is_network(kind):
    return (kind[len("fuse.") :] if kind.startswith("fuse.") else kind) in NETWORK_KINDS


def visible(tree):
    """Return {path: mount} of what is seen at each mount point: what was mounted there last. tree: of /proc."""
    return {one["point"]: one for one in parse_mounts(tree.text("/self/mountinfo"))}


def read_network_mounts(tree):
    """Return [{point, type, source, fault}] of the network file systems, by path; tree: of /proc.

    fault: None where it answers, else SILENT, or the name of its error, such as ESTALE. One that is at several paths is asked once.
    """
    by_path = sorted(visible(tree).items(), reverse=True)
    mounts = {one["number"]: one for dummy, one in by_path if is_network(one["type"])}
    found = sorted(mounts.values(), key=lambda mount: mount["point"])
    answers = ask([one["point"] for one in found])
    return [
        {"point": one["point"], "type": one["type"], "source": one["source"], "fault": answers[one["point"]]["fault"]}
        for one in found
    ]


def probe_mounts(tree, points, user):
    """Return {path: {type, source, fault, free, size, writable}} of paths, None where nothing is mounted.

    tree: of /proc; user: the one who asks, see ask. They are asked first: that is what an automounter waits for.
    """
    answers, mounts = ask(points, user), visible(tree)
    found = {point: mounts.get(os.path.normpath(point)) for point in points}
    return {point: one and dict(answers[point], type=one["type"], source=one["source"]) for point, one in found.items()}


def in_words(mount):
    """Return a mount and its fault, in words. mount: has type, source and fault."""
    where = "%(type)s of %(source)s" % mount
    if not mount["fault"]:
        return where
    if mount["fault"] == SILENT:
        return "%s does not answer within %d s" % (where, SECONDS)
    return "%s answers with %s" % (where, mount["fault"])


def ask(points, user=None):
    """Return {path: {fault, free, size, writable}}; free and size in bytes, None where there is a fault.

    writable: whether the user may make files there, None without one; it is the user who asks, where this process may become it.
    """
    said = bounded(lambda say: _ask_all(points, user, say), SECONDS)[0] if points else []
    answers, silent = dict(said), {"fault": SILENT, "free": None, "size": None, "writable": None}
    return {point: answers.get(point, silent) for point in points}


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
        return {"fault": errno.errorcode.get(error.errno, "an error"), "free": None, "size": None, "writable": None}
    free, size = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
    return {"fault": None, "free": free, "size": size, "writable": writable}
