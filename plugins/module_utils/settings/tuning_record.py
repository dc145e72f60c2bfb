# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values on a node before the first change of a role, so that it can be put back as it was; each role has its own.

{``format``, ``boot``: of the kernel, ``files``: {path: what was there, None where nothing was}, ``values``: {path: text},
``arguments``: {those that were added: paths of the places that had them already}, ``lines``: {path of such a place: its line
of arguments}, ``profile``: {profile, mode} of tuned or None, ``directories``: those that were made, ``commands``: programs that
failed and have to be run again}.
A file is {content, mode, owner, group}, content with every byte that is not UTF-8 as a surrogate; a link is {link}.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import re

DIRECTORY = "/var/lib/allreduce"
PATH = DIRECTORY + "/tuning.json"
FORMAT = 1
# These name things that the next boot may renumber.
FLEETING = "/proc/irq/"
BOOT = "/proc/sys/kernel/random/boot_id"


def empty(tree):
    """Return the record of a node that nothing was changed on."""
    return {
        "format": FORMAT, "boot": tree.text(BOOT), "files": {}, "values": {}, "arguments": {}, "lines": {},
        "profile": None, "directories": [], "commands": [],
    }  # fmt: skip


def path_of(name):
    """Return where the record of that name is. ValueError for one that would be a path of its own."""
    if not re.match(r"[a-z_]+\Z", name):
        raise ValueError("%r is no name of a record" % name)
    return "%s/%s.json" % (DIRECTORY, name)


def load(tree, path=PATH):
    """Return the record, or None where there is none. ValueError for one that is not ours to understand."""
    text = tree.text(path)
    if text is None:
        return None
    record = json.loads(text)
    if record.get("format") != FORMAT:
        raise ValueError("%s has format %s; this release reads %d" % (path, record.get("format"), FORMAT))
    if record["boot"] != tree.text(BOOT):
        fleeting = [path for path in record["values"] if path.startswith(FLEETING)]
        record = dict(
            record, boot=tree.text(BOOT), values={p: v for p, v in record["values"].items() if p not in fleeting}
        )
    return record


def dump(record):
    """Return the text of the record."""
    return json.dumps(record, indent=1, sort_keys=True) + "\n"


def values_of(record, paths):
    """Return the recorded values of files that are one switch together, as sysctl.read_switch tells it; None where nothing was recorded."""
    values = {record["values"][path] for path in paths if path in record["values"]}
    return ", ".join(sorted(values)) or None


def is_empty(record):
    """Return True if nothing is left that could be put back."""
    return not any(record[part] for part in ("files", "values", "arguments", "profile", "commands"))
