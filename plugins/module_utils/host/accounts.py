# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounts of the node, wherever they are kept."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import grp
import os
import pwd


def fits(user, wanted):
    """Return True if the user exists with this ``group``, ``home``, which is there, and ``shell``; with a ``uid``, both have it."""
    try:
        found, group = pwd.getpwnam(user), grp.getgrnam(wanted["group"])
    except KeyError:
        return False
    numbers = {found.pw_uid, group.gr_gid} if wanted["uid"] is not None else set()
    return (
        numbers <= {wanted["uid"]}
        and found.pw_gid == group.gr_gid
        and (found.pw_dir, found.pw_shell) == (wanted["home"], wanted["shell"])
        and os.path.isdir(found.pw_dir)
    )
