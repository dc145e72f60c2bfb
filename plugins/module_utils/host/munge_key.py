# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key with which the hosts of a Slurm cluster trust each other: made once, then given to the others.

munged starts with a key of its own user alone, in a directory where no other user may write (munged(8), --key-file).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import pwd
import stat

from ..machine.regular import read_regular
from . import boot_notes

PATH = "/etc/munge/munge.key"
USER, DAEMON = "munge", "munged"
# The processes that have the key before, which a restart ends.
NOTE = "munge"
# What is made; munged takes 32 to 1024 bytes (munge.7, mungekey.8).
SIZE, SHORTEST, LONGEST = 1024, 32, 1024
MODE, DIRECTORY_MODE = 0o400, 0o700


def owner(user=USER):
    """Return uid and gid of the user; those of root before the package has made it, which then takes the key over."""
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        return 0, 0
    return found.pw_uid, found.pw_gid


def read(path):
    """Return the bytes of the key; None where there is none. ValueError for one that munged would not take."""
    if not os.path.lexists(path):
        return None
    content = read_regular(path, 2 * LONGEST)
    if not SHORTEST <= len(content) <= LONGEST:
        raise ValueError("%s has %d bytes, and munged takes %d to %d" % (path, len(content), SHORTEST, LONGEST))
    return content


def is_placed(path, identity):
    """Return True if the key that is there belongs to its user, and only that one can read it."""
    status = os.lstat(path)
    return stat.S_IMODE(status.st_mode) == MODE and (status.st_uid, status.st_gid) == identity


def bring(tree, path, wanted, identity, check):
    """Do what ``keep`` does; changed is also a key that no restart has brought into use, as where a run ended before that."""
    if not check and keep(path, wanted, identity, True)[0]:
        boot_notes.write(tree, NOTE, daemons(tree))
    changed, key = keep(path, wanted, identity, check)
    return changed or is_waiting(tree, check), key


def is_waiting(tree, check):
    """Return True if a process that was there before the key still runs."""
    noted = boot_notes.read(tree, NOTE)
    if noted is None:
        return False
    found = any(one in noted for one in daemons(tree))
    if not found and not check:
        boot_notes.remove(tree, NOTE)
    return found


def daemons(tree):
    """Return [[pid, when it started, in ticks since boot]] of munged (proc_pid_stat(5))."""
    found = []
    for pid in (name for name in tree.names("/proc") if name.isdigit()):
        head, dummy, rest = (tree.text("/proc/%s/stat" % pid) or "").rpartition(")")
        fields = rest.split()
        if head.partition("(")[2] == DAEMON and len(fields) > 19:
            found.append([int(pid), int(fields[19])])
    return found


def keep(path, wanted, identity, check):
    """Bring the file to the key WANTED, None for the one that is there or a new one; return (changed, the key).

    identity: uid and gid of the owner; check: change nothing. The key is None where there is none and nothing may be changed.
    """
    there = read(path) if wanted is None else _read_any(path)
    if there is not None and wanted in (None, there):
        changed = not is_placed(path, identity)
        if changed and not check:
            _place(path, identity)
        return changed, there
    if check:
        return True, wanted
    content = os.urandom(SIZE) if wanted is None else wanted
    _write(path, content, identity)
    return True, content


def _read_any(path):
    """Return the bytes of a key that may be replaced, however wrong it is; None of what is no file."""
    try:
        return read(path)
    except (EnvironmentError, ValueError):
        return None


def _place(path, identity):
    os.chown(path, *identity)
    os.chmod(path, MODE)


def _write(path, content, identity):
    """Put the key in place at once, readable by no other user at any time."""
    directory, new = os.path.dirname(path), "%s.allreduce" % path
    if not os.path.isdir(directory):
        os.makedirs(directory, DIRECTORY_MODE)
        os.chown(directory, *identity)
    if os.path.lexists(new):
        os.unlink(new)
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    _place(new, identity)
    os.rename(new, path)
