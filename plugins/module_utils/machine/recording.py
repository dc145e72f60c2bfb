# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write all that is read of a machine into a directory, so that it can be examined elsewhere, and become a test.

``sys``, ``proc`` and ``root`` are trees for the modules' options of these names, ``profile`` is what NVML answered (see nvml_profile).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
from contextlib import contextmanager

from .files import FileTree, make_directories
from .nvml import open_nvml
from .nvml_errors import ERRORS
from .nvml_profile import Recorder

NUMBERS = {code: number for number, code in ERRORS.items()}


class RecordingTree(FileTree):
    """A tree that copies what is read of it below ``place``: files, links as they are, and the names in directories."""

    def __init__(self, root, place, reduce=None):
        FileTree.__init__(self, root)
        self.place, self.reduce, self.source = place, reduce, FileTree(root)

    def content(self, path):
        text = FileTree.content(self, path)
        if text is not None:
            kept = self.reduce(path, text) if self.reduce else text
            self.write(self.resolve(path), kept.encode("utf-8"))
        return text

    def link(self, path):
        target = self.source.link(path)
        if target is not None:
            parent, dummy, name = path.rpartition("/")
            place = self.made("%s/%s" % (self.resolve(parent), name))
            if not os.path.lexists(place):
                inside = (
                    os.path.relpath(self.place + target, os.path.dirname(place)) if target.startswith("/") else target
                )
                os.symlink(inside, place)
        return target

    def names(self, path):
        names = FileTree.names(self, path)
        for name in names:
            self.note("%s/%s" % (path, name))
        return names

    def exists(self, path):
        found = FileTree.exists(self, path)
        if found:
            self.note(path)
        return found

    def is_directory(self, path):
        found = FileTree.is_directory(self, path)
        if found:
            self.note(self.resolve(path))
        return found

    def path(self, path):
        place = self.source.path(path)
        if path.endswith("/config"):  # of PCI, the only file that is not text
            self.copy(path, place)
        return place

    def note(self, path):
        """Write that something is there: a link, a directory, or a file that is empty until it is read."""
        if self.link(path) is not None:
            return
        place = self.made(self.resolve(path))
        if os.path.isdir(self.source.path(path)):
            if not os.path.isdir(place):
                make_directories(place)
        elif not os.path.lexists(place):
            open(place, "wb").close()

    def copy(self, path, source):
        try:
            with open(source, "rb") as stream:
                content = stream.read(4096)
        except (IOError, OSError):
            return
        self.write(self.resolve(path), content)

    def write(self, path, content):
        with open(self.made(path), "wb") as stream:
            stream.write(content)

    def made(self, path):
        """Return the place of a path whose directories are links no more, with the directory that it is in."""
        place = self.place + path
        if not os.path.isdir(os.path.dirname(place)):
            make_directories(os.path.dirname(place))
        return place


class Recording:
    """A directory for one machine, and what reads it through: trees, and ``opener`` in place of nvml.open_nvml."""

    def __init__(self, place):
        if os.path.lexists(place) and (not os.path.isdir(place) or os.listdir(place)):
            raise ValueError("%s exists and is not an empty directory" % place)
        if not os.path.isdir(place):
            make_directories(place, 0o077)
        self.place, self.lines = place, {}

    def tree(self, name, root, reduce=None):
        place = os.path.join(self.place, name)
        if not os.path.isdir(place):
            make_directories(place)
        return RecordingTree(root, place, reduce)

    @contextmanager
    def opener(self, library):
        with open_nvml(library, lambda pynvml: Recorder(pynvml, self.lines)) as opened:
            yield opened

    def finish(self, node, log=None):
        """Write what NVML answered; ``node``: the gpu_node of it, ``log``: the kernel's, reduced."""
        driver = node["driver"]
        lines = dict(self.lines)
        if driver["library_version"]:
            major = (driver["cuda_driver_version"] or "12").partition(".")[0]
            lines["system", "nvml_version"] = "%s.%s" % (major, driver["library_version"])
        if driver["nvml_state"] != "ok":
            lines["system", "init"] = "!%d" % NUMBERS.get(driver["nvml_state"], 9)
        text = "".join("%s %s %s\n" % (section, key, value) for (section, key), value in sorted(lines.items()))
        with open(os.path.join(self.place, "profile"), "w") as stream:
            stream.write(text)
        if log is not None:
            with open(os.path.join(self.place, "kmsg"), "wb") as stream:
                stream.write(log.encode("utf-8"))
