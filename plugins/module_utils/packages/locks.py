# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the processes that lock the package manager."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re

LOCKED_FILES = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
    "/var/lib/rpm/.rpm.lock",
)
# dnf writes its process number into these and removes them at its end.
NUMBER_FILES = (
    "/var/cache/dnf/metadata_lock.pid",
    "/var/cache/dnf/download_lock.pid",
    "/var/lib/dnf/rpmdb_lock.pid",
)


def lock_holder(tree):
    """Return {pid, program} of the process that holds a lock of apt, dpkg, dnf or rpm; None where no process does."""
    held = {
        int(inode): int(pid)
        for pid, inode in re.findall(
            r"(?m)^\d+: \S+ +\S+ +WRITE +(\d+) +\w+:\w+:(\d+) ", tree.text("/proc/locks") or ""
        )
    }
    pids = [held.get(_inode(tree, name)) for name in LOCKED_FILES] + [tree.number(name) for name in NUMBER_FILES]
    for pid in pids:
        program = _program(tree, pid) if pid else None
        if program:
            return {"pid": pid, "program": program}
    return None


def _inode(tree, name):
    try:
        return os.stat(tree.path(name)).st_ino
    except OSError:
        return None


def _program(tree, pid):
    """Return the command line of a process, cut; None of a process that is gone."""
    command = (tree.text("/proc/%d/cmdline" % pid) or "").replace("\0", " ").split()
    return " ".join(command)[:100] or tree.text("/proc/%d/comm" % pid)
