# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes of modules for the modules after them: only root reads them. Those below /run a boot takes away, those below KEPT stay."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os

from ..machine.files import make_directories, replace
from .kept_files import remove_empty

DIRECTORY = "/run/allreduce"
KEPT = "/var/lib/allreduce/notes"


def read(tree, name, directory=DIRECTORY):
    """Return the document of a note, None where there is none or where it cannot be read."""
    try:
        return json.loads(tree.content(_path(name, directory)) or "null")
    except ValueError:
        return None


def write(tree, name, document, directory=DIRECTORY):
    """Write a note; EnvironmentError where that cannot be done."""
    path = tree.path(_path(name, directory))
    place = os.path.dirname(path)
    if not os.path.isdir(place):
        make_directories(place)
    replace(path, json.dumps(document), 0o600)


def remove(tree, name, directory=DIRECTORY):
    """Take a note away, of those kept with the directories that are empty then; EnvironmentError where that cannot be done."""
    path = _path(name, directory)
    if tree.exists(path):
        os.unlink(tree.path(path))
        if directory == KEPT:
            remove_empty(tree, ["/var", "/var/lib", "/var/lib/allreduce", KEPT])


def _path(name, directory=DIRECTORY):
    return "%s/%s.json" % (directory, name)
