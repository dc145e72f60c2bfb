# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse the kernel's tables and the output of util-linux about disks into plain values."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import re


def parse_mounts(text):
    """Return [{id, parent, number, root, point, type, source, options, groups}] of a mountinfo (proc(5)).

    options: of the mount and of the file system; groups: {"shared", "master", "propagate_from": the peer group, where there is one}.
    """
    found = []
    for line in (text or "").splitlines():
        fields = line.split(" ")
        if len(fields) < 10 or "-" not in fields[6:]:
            continue
        end = fields.index("-", 6)
        rest = fields[end + 1 :]
        found.append({
            "id": fields[0],
            "parent": fields[1],
            "number": fields[2],
            "root": unescape(fields[3]),
            "point": unescape(fields[4]),
            "type": rest[0],
            "source": unescape(rest[1]),
            "options": sorted(set(fields[5].split(",") + rest[2].split(","))),
            "groups": dict(field.split(":", 1) for field in fields[6:end] if ":" in field),
        })  # fmt: skip
    return found


def parse_swaps(text):
    """Return the paths of a /proc/swaps."""
    return {unescape(line.split()[0]) for line in (text or "").splitlines()[1:] if line.split()}


def unescape(word):
    """Return a word of the kernel's tables, which write space, tab, line feed, backslash and # as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), word)


def parse_wipefs(text):
    """Return [{type, uuid, offset}] of ``wipefs --parsable``; a label may have commas, hence both ends are read."""
    found = []
    for line in text.splitlines():
        fields = line.split(",")
        if line.startswith("#") or len(fields) < 4:
            continue
        found.append({"offset": int(fields[0], 0), "uuid": fields[1] or None, "type": fields[-1]})
    return found


def lsblk_devices(text):
    """Return {name: what lsblk sees on a disk or below it}; {} where it said nothing that can be read.

    Without udev's database it does not know signatures, with it it may know an old one: it is one witness among others.
    """
    try:
        listed = json.loads(text or "{}").get("blockdevices") or []
    except (AttributeError, ValueError):
        return {}
    return {str(one.get("kname") or one.get("name")): sorted(set(_seen(one))) for one in listed}


def _seen(device):
    found = [value for value in (device.get("fstype"), device.get("pttype")) if value]
    for child in device.get("children") or []:
        found.append("%s %s" % (child.get("type"), child.get("name")))
        found += _seen(child)
    return found


def bare_uuid(text):
    """Return the hexadecimal digits of a UUID: mdadm writes them with colons, blkid with hyphens."""
    return re.sub(r"[^0-9a-f]", "", (text or "").lower())
