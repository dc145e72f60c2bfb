# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read files where another user may have put anything: never wait for a pipe or a device, never read without an end."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import stat

# Bytes of a file that the controller takes of a node. A record of a thousand nodes has half a megabyte.
LONGEST = 8 * 2**20


class IrregularError(ValueError):
    """The path is not that of a regular file, or not one to be read; the text says why."""


def open_regular(path, follow=False, uid=None):
    """Return a binary stream of a regular file, of the user with this number if one is given; raise OSError or IrregularError.

    A symbolic link is an error unless it is to be followed.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    handle = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode) and uid in (None, status.st_uid):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise IrregularError("%s is not a regular file%s: remove it" % (path, "" if uid is None else " of the user"))


def read_regular(path, limit, follow=False, uid=None):
    """Return the content of a regular file of at most LIMIT bytes; raise OSError or IrregularError."""
    with open_regular(path, follow, uid) as stream:
        # The size may change while it is read.
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise IrregularError("%s has more than %d bytes" % (path, limit))
    return content


def read_end(path, limit, follow=False, uid=None):
    """Return (the last LIMIT bytes of a regular file, the number of bytes before them); raise OSError or IrregularError."""
    with open_regular(path, follow, uid) as stream:
        before = max(0, os.fstat(stream.fileno()).st_size - limit)
        stream.seek(before)
        return stream.read(limit), before
