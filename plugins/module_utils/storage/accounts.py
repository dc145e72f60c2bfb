# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resolve user and group of a requested scratch to their numbers on this node."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import grp
import pwd

from ..machine.problems import problem

KEYS = ("disks", "count", "name", "options", "chunk_kib", "mode", "trim")


def identify(given, check=False):
    """Return the options as the plan takes them; in check mode a user may still have to be made."""
    wanted = {key: given[key] for key in KEYS}
    wanted["mount_point"] = "/" + given["mount_point"].strip("/")
    wanted["minimum"] = given["minimum_gb"] * 1000**3
    wanted["options"] = list(given["options"]) + ([] if "nofail" in given["options"] else ["nofail"])
    uid, gid = _user(given["owner"])
    if given["group"]:
        gid = _group(given["group"])
    missing = [given["owner"]] if uid is None else [given["group"]] if gid is None else []
    wanted.update(uid=uid, gid=gid, problems=[] if check else [problem("owner_missing", one) for one in missing])
    return wanted


def _user(name):
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None, None
    return found.pw_uid, found.pw_gid


def _group(name):
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None
