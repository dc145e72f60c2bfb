# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of ours in files that others write, too: /etc/fstab and mdadm.conf. Every other line stays as it is."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from .tables import unescape

FSTAB = "/etc/fstab"
MARK = "# Written by role allreduce.gpu.scratch."


def fstab_entry(record, options):
    """Return the line that mounts the scratch: by UUID, and without it the node boots all the same."""
    point = re.sub(r"[\s\\#]", lambda found: "\\%03o" % ord(found.group()), record["mount_point"])
    return "UUID=%s %s xfs %s 0 0" % (record["filesystem"], point, ",".join(options))


def array_entry(record):
    """Return the line that names the array; mdadm takes its members by the UUID wherever they are."""
    digits = record["array"]["uuid"].replace("-", "")
    uuid = ":".join(digits[at : at + 8] for at in range(0, 32, 8))
    return "ARRAY /dev/md/%s metadata=1.2 UUID=%s" % (record["array"]["name"], uuid)


def with_line(text, line, key):
    """Return the text with exactly this line of ours, where the old one with the same words ``key`` was, else at the end."""
    lines, at = _without(text, key)
    if line is None:
        return "".join(lines)
    if at is None and lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    at = len(lines) if at is None else at
    return "".join(lines[:at] + [MARK + "\n", line + "\n"] + lines[at:])


def _without(text, key):
    """Return (lines without ours, where it was); ours has these words, with our mark above it or not."""
    lines, at = (text or "").splitlines(True), None
    while True:
        found = next((number for number, line in enumerate(lines) if line.split()[: len(key)] == key), None)
        if found is None:
            return lines, at
        marked = found > 0 and lines[found - 1].strip() == MARK
        del lines[found]
        at = found
        if marked:
            del lines[found - 1]
            at = found - 1


def mounts_of_others(text, record):
    """Return the sources that an fstab mounts at our mount point and that are not ours."""
    ours, found = "UUID=" + record["filesystem"], []
    for line in (text or "").splitlines():
        words = line.split()
        if len(words) > 1 and not words[0].startswith("#") and unescape(words[1]) == record["mount_point"]:
            found += [words[0]] if words[0] != ours else []
    return found


def arrays_of_others(text, record):
    """Return the lines by others of an mdadm.conf that give our array's name to an array."""
    key, before, found = array_entry(record).split()[:2], "", []
    for line in (text or "").splitlines():
        if line.split()[:2] == key and before.strip() != MARK:
            found.append(line.strip())
        before = line
    return found
