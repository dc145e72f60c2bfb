# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is at the paths that module config_files kept since the node booted, so that nobody has to look at them again.

The paths are noted below /run, which is empty after a boot: without them, files are compared on the node as ever.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib

from . import boot_notes, config_files

NOTES = "files"
# The entry of a file of which all is told by its path, state, content, mode, owner and group; its checker sees only a new content.
PLAIN = frozenset(["path", "state", "content", "mode", "owner", "group", "validate"])
DEFAULTS = {"state": "file", "mode": "0644", "owner": "root", "group": "root"}


def words(entry):
    """Return state, mode, owner, group and digest of {state, content, mode, owner, group} as one text."""
    if entry["state"] not in ("file", "directory"):
        return entry["state"]
    found = "%(state)s %(mode)s %(owner)s:%(group)s" % entry
    if entry["state"] == "directory":
        return found
    return "%s %s" % (found, hashlib.sha256(config_files.as_bytes(entry["content"])).hexdigest())


def expected(entry):
    """Return the words for what a declared entry asks for; None where the node has to be asked what that is."""
    given = {key: value for key, value in entry.items() if value is not None}
    entry = dict(DEFAULTS, **given)
    whole = entry["state"] != "file" or "content" in entry
    texts = all(isinstance(entry[key], type("")) for key in entry if key != "validate")
    return words(entry) if whole and texts and set(given) <= PLAIN else None


def read_seen(tree):
    """Return {path: words} of what is now at the noted paths; what cannot be read is left out."""
    found = {}
    for path in _noted(tree):
        try:
            found[path] = words(config_files.read(tree.path(path)))
        except (EnvironmentError, KeyError):
            continue
    return found


def note(tree, paths):
    """Add paths to the notes, and return what is there. Where they cannot be written nothing is lost."""
    noted = _noted(tree)
    if set(paths) - set(noted):
        try:
            boot_notes.write(tree, NOTES, sorted(set(noted) | set(paths)))
        except EnvironmentError:
            return {}
    return {path: found for path, found in read_seen(tree).items() if path in paths}


def _noted(tree):
    found = boot_notes.read(tree, NOTES)
    return [path for path in found if isinstance(path, type(""))] if isinstance(found, list) else []
