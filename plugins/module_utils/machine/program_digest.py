# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A digest of a program of the collection's on a node: what of it is there."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib
import os


def read_digest(tree, directory, scripts=()):
    """Return one digest of the modules and scripts in a directory, None where there are none; a script that cannot be run is not there."""
    files = dict(read_files(tree, directory))
    for name in scripts:
        path = "%s/%s" % (directory, name)
        if os.access(tree.path(path), os.X_OK):
            files[name] = tree.text(path) or ""
    return digest(files) if files else None


def read_files(tree, directory, below=""):
    """Yield (path below the directory, text) of every module."""
    for name in tree.names(directory + below):
        path = "%s/%s" % (below, name)
        if name.endswith(".py"):
            yield path[1:], tree.text(directory + path) or ""
        elif tree.is_directory(directory + path):
            yield from read_files(tree, directory, path)


def digest(files):
    """Return one digest of {path: text}; white space at the end does not count."""
    found = hashlib.sha256()
    for path in sorted(files):
        found.update(("%s\0%s\0" % (path, files[path].rstrip())).encode("utf-8"))
    return found.hexdigest()
