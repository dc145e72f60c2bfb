# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are put back as they were: every byte, mode and owner, and links as links."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import stat

from ..machine.files import make_directories, masked


def read(tree, path):
    """Return {content, mode, owner, group} of a file, {link} of a link, None where nothing is; ValueError for a directory."""
    place = tree.path(path)
    try:
        status = os.lstat(place)
    except OSError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return {"link": os.readlink(place)}
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("%s is not a file: move it away" % path)
    with open(place, "rb") as stream:
        content = stream.read().decode("utf-8", "surrogateescape")
    mode = "%04o" % stat.S_IMODE(status.st_mode)
    return {"content": content, "mode": mode, "owner": status.st_uid, "group": status.st_gid}


def readable(value):
    """Return a value about files with a question mark for each byte that is not UTF-8: Ansible takes no others."""
    if isinstance(value, dict):
        return {key: readable(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [readable(one) for one in value]
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


def missing_directories(tree, paths):
    """Return the directories above the paths that have to be made, upper ones first."""
    found = set()
    for path in paths:
        directory = os.path.dirname(path)
        while directory != "/" and not tree.exists(directory):
            found.add(directory)
            directory = os.path.dirname(directory)
    return sorted(found)


def put(tree, path, entry, replace):
    """Bring a path to its entry; ``replace(path on disk, bytes)`` puts a file in place at once."""
    place = tree.path(path)
    if entry is None:
        os.unlink(place)
        return
    if not os.path.isdir(os.path.dirname(place)):
        make_directories(os.path.dirname(place))
    if "link" in entry:
        if os.path.lexists(place):
            os.unlink(place)
        os.symlink(entry["link"], place)
        return
    if os.path.islink(place):
        os.unlink(place)  # what it points to belongs to another owner
    with masked(~int(entry["mode"], 8) & 0o777):  # what is to be secret never is a file that others can read
        replace(place, entry["content"].encode("utf-8", "surrogateescape"))
    os.chmod(place, int(entry["mode"], 8))
    if "owner" in entry:
        os.chown(place, entry["owner"], entry["group"])


def remove_empty(tree, directories):
    """Remove those of the directories that are empty; the rest is left."""
    for directory in sorted(directories, reverse=True):
        try:
            os.rmdir(tree.path(directory))
        except OSError:
            continue
