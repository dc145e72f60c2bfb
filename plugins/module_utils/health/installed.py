# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of the program of role health is on a node."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib

DIRECTORY = "/opt/allreduce/lib/health"
DECLARATION = "/etc/allreduce/health.json"


def read_installed(tree):
    """Return {``program``: digest, ``declaration``: text}, None for what is not there; None where neither is."""
    files = dict(read_files(tree, ""))
    found = {"program": digest(files) if files else None, "declaration": tree.text(DECLARATION)}
    return found if any(value is not None for value in found.values()) else None


def read_files(tree, below):
    """Yield (path below the directory, text) of every module."""
    for name in tree.names(DIRECTORY + below):
        path = "%s/%s" % (below, name)
        if name.endswith(".py"):
            yield path[1:], tree.text(DIRECTORY + path) or ""
        elif tree.is_directory(DIRECTORY + path):
            yield from read_files(tree, path)


def digest(files):
    """Return one digest of {path: text}; white space at the end does not count."""
    found = hashlib.sha256()
    for path in sorted(files):
        found.update(("%s\0%s\0" % (path, files[path].rstrip())).encode("utf-8"))
    return found.hexdigest()
