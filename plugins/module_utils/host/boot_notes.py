# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes of modules for the modules after them, below /run: only root reads them, and a boot takes them away."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import tempfile

from ..machine.files import make_directories

DIRECTORY = "/run/allreduce"


def read(tree, name):
    """Return the document of a note, None where there is none or where it cannot be read."""
    try:
        return json.loads(tree.content(_path(name)) or "null")
    except ValueError:
        return None


def write(tree, name, document):
    """Write a note; EnvironmentError where that cannot be done."""
    path = tree.path(_path(name))
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        make_directories(directory)
    handle, new = tempfile.mkstemp(dir=directory)
    with os.fdopen(handle, "w") as stream:
        json.dump(document, stream)
    os.rename(new, path)


def remove(tree, name):
    """Take a note away; EnvironmentError where that cannot be done."""
    if tree.exists(_path(name)):
        os.unlink(tree.path(_path(name)))


def _path(name):
    return "%s/%s.json" % (DIRECTORY, name)
