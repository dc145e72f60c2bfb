# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read small files below a root directory; what cannot be read is None or empty, never an exception."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
from contextlib import contextmanager


@contextmanager
def masked(mask):
    """Have what is made meanwhile without the rights of ``mask``, whatever the umask of the process."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def make_directories(path, mask=0o022):
    """Make a directory, and those above it that are missing; ``mask``: what they do not grant, whatever the umask of the process.

    Hardened hosts give root 027 or 077, with which no other user would get through a directory that is made on the way.
    """
    with masked(mask):
        os.makedirs(path)


def write_beside(path, content, mode=0o644):
    """Write the bytes to the disk, next to the place to which os.rename brings them; return where. What fails leaves nothing.

    ``mode``: whatever the umask of the process. What an interrupted process left there is rewritten.
    """
    new = path + ".new"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(descriptor, mode)
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
    except EnvironmentError as error:
        os.unlink(new)
        error.filename = path  # that of a write has none
        raise
    return new


def flush(path):
    """Have what was written to a file on the disk; else a power cut can leave it empty, also under the name that it gets next."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_bytes(path, content, mode=0o644):
    """Put the bytes in place at once, so that no reader sees a part of them, and a power cut leaves the former or the new ones."""
    os.rename(write_beside(path, content, mode), path)


def replace(path, text, mode=0o644):
    """Put a text in place at once."""
    replace_bytes(path, text.encode("utf-8"), mode)


class FileTree:
    """Files of a machine, or of a recorded machine, below ``root``. Paths given and returned begin with '/'."""

    def __init__(self, root="/"):
        self.root = os.path.realpath(root)

    def path(self, path):
        """Return the path on this machine's disk."""
        return os.path.join(self.root, path.lstrip("/"))

    def text(self, path):
        """Return the file's text without trailing white space, or None."""
        content = self.content(path)
        return None if content is None else content.rstrip()

    def content(self, path):
        """Return the file's text as it is, or None."""
        try:
            with open(self.path(path), "rb") as stream:
                return stream.read().decode("utf-8", "replace")
        except (IOError, OSError):
            return None

    def number(self, path):
        """Return the decimal or 0x-hexadecimal number in the file, or None."""
        try:
            return int(self.text(path), 0)
        except (TypeError, ValueError):
            return None

    def names(self, path):
        """Return the sorted names in the directory; empty when there is none."""
        try:
            return sorted(os.listdir(self.path(path)))
        except (IOError, OSError):
            return []

    def exists(self, path):
        return os.path.lexists(self.path(path))

    def is_directory(self, path):
        """Return True if the path, symbolic links followed below the root, is a directory."""
        return os.path.isdir(self.path(self.resolve(path)))

    def link(self, path):
        """Return where the symbolic link points, as written; None when it is none."""
        try:
            return os.readlink(self.path(path))
        except (IOError, OSError):
            return None

    def resolve(self, path):
        """Follow symbolic links with ``root`` as the root directory, as chroot would (at most 40 of them)."""
        todo, done, links = path.split("/"), [], 0
        while todo:
            part = todo.pop(0)
            if part == "..":
                done = done[:-1]
            elif part not in ("", "."):
                target = self.link("/".join([""] + done + [part])) if links < 40 else None
                if target is None:
                    done.append(part)
                else:
                    links += 1
                    done = [] if target.startswith("/") else done
                    todo = target.split("/") + todo
        return "/" + "/".join(done)
