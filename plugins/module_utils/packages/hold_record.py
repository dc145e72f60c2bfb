# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declaration with which packages were held, kept on the node so that one measurement tells whether it still holds."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

DIRECTORY = "/var/lib/allreduce/holds"
NAMES = ("packages", "excluded", "services", "module_stream", "kernel")


def path(name):
    return "%s/%s.json" % (DIRECTORY, name)


def text(hold):
    """Return the record of a hold; None, so no file, where packages are released."""
    if hold["state"] != "held":
        return None
    return json.dumps({name: hold[name] for name in NAMES}, indent=1, sort_keys=True) + "\n"


def read(tree):
    """Return {name: the declaration} of all records that can be read."""
    found = {}
    for file_name in sorted(tree.names(DIRECTORY)):
        name, _dot, ending = file_name.rpartition(".")
        try:
            record = json.loads(tree.text(path(name)) or "")
        except ValueError:
            continue
        if ending == "json" and isinstance(record, dict) and set(record) == set(NAMES):
            found[name] = record
    return found
