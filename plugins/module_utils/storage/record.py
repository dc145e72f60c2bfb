# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a scratch: which disks, and the names of what was made of them.

{``format``, ``mount_point``, ``disks``: [{size, model, serial}], ``array``: {name, uuid, chunk_kib}, None for one disk,
``filesystem``: its UUID, ``made``: paths that were not there before, ``trim``: the timer was enabled by us, ``pending``: what has
to be done again}. It is written before the first disk is touched, so that what was interrupted is known as ours.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

DIRECTORY = "/var/lib/allreduce"
PATH = DIRECTORY + "/scratch.json"
# Where the record is while the scratch is taken down and its data is kept.
STOPPED = DIRECTORY + "/scratch-stopped.json"
FORMAT = 1


def load(tree):
    """Return the record, of a stopped scratch too; None where there is none. ValueError for one that is not ours to understand."""
    path = PATH if tree.exists(PATH) else STOPPED
    text = tree.text(path)
    if text is None:
        return None
    record = json.loads(text)
    if record.get("format") != FORMAT:
        raise ValueError("%s has format %s; this release reads %d" % (path, record.get("format"), FORMAT))
    return record


def dump(record):
    """Return the text of the record."""
    return json.dumps(record, indent=1, sort_keys=True) + "\n"


def new(wanted, disks, new_uuid):
    """Return the record of a scratch of these disks; ``new_uuid`` returns one that is not in use."""
    array = {"name": wanted["name"], "uuid": new_uuid(), "chunk_kib": wanted["chunk_kib"]} if len(disks) > 1 else None
    return {
        "format": FORMAT, "mount_point": wanted["mount_point"], "disks": [entry(one) for one in disks], "array": array,
        "filesystem": new_uuid(), "made": [], "trim": False, "pending": [],
    }  # fmt: skip


def entry(disk):
    """Return the properties by which a disk is known."""
    return {key: disk[key] for key in ("size", "model", "serial")}


def fits(record, disks):
    """Return True if the disks are what the record's were: as many, of the same sizes and models; serial numbers may be new."""
    kinds = [sorted((one["size"], one["model"] or "") for one in group) for group in (record["disks"], disks)]
    return kinds[0] == kinds[1]
