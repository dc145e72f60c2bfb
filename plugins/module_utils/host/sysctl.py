# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters below /proc/sys, the files that set them at boot, and other switches that are one file each."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re
from fnmatch import fnmatchcase

# Of files with one name, only that of the first directory counts: sysctl.d(5).
DIRECTORIES = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
# Read after all others by `sysctl --system`: sysctl(8).
LAST = "/etc/sysctl.conf"
SEPARATORS = {".": "/", "/": "."}


def normalise(key):
    """Return the key with dots; one whose first separator is a slash has dots within its words, such as net/ipv4/conf/eth0.1."""
    first = re.search(r"[./]", key)
    return re.sub(r"[./]", lambda one: SEPARATORS[one.group()], key) if first and first.group() == "/" else key


def path_of(key):
    """Return the file of a normalised key."""
    return "/proc/sys/" + re.sub(r"[./]", lambda one: SEPARATORS[one.group()], key)


def selected(text):
    """Return the setting of a switch: the word in brackets of those that offer a choice, else the words with single spaces."""
    if text is None:
        return None
    chosen = re.search(r"(?:^|\s)\[(\S+)\](?:\s|$)", text)
    return chosen.group(1) if chosen else " ".join(text.split())


def chosen_files(tree, directories):
    """Return paths of the files that are read, by their names; of one name, that of the first directory."""
    chosen = {}
    for directory in directories:
        for name in tree.names(directory):
            if name.endswith(".conf"):
                chosen.setdefault(name, "%s/%s" % (directory, name))
    return [path for dummy, path in sorted(chosen.items())]


def files_in_order(tree):
    """Return paths in the order in which they are read; those read later win."""
    paths = [path for path in chosen_files(tree, DIRECTORIES) if tree.resolve(path) != LAST]
    return paths + ([LAST] if tree.exists(LAST) else [])


def read_lines(tree, keys):
    """Return [{file, line, key, value}] of the lines that set one of the keys by its name, in the order in which they are read.

    A line with a pattern never sets a key that another line names: sysctl.d(5).
    """
    found = []
    for path in files_in_order(tree):
        for number, line in enumerate((tree.text(tree.resolve(path)) or "").splitlines(), 1):
            setting = re.match(r"\s*-?\s*([^#;=\s]+)\s*=\s*(.*?)\s*$", line)
            key = normalise(setting.group(1)) if setting else None
            if key in keys:
                found.append({"file": path, "line": number, "key": key, "value": selected(setting.group(2))})
    return found


def expand(tree, pattern):
    """Return paths of the files that a pattern means; '*' stands for any name of one directory."""
    paths = [""]
    for part in pattern.strip("/").split("/"):
        if "*" in part or "[" in part:
            paths = ["%s/%s" % (path, name) for path in paths for name in tree.names(path) if fnmatchcase(name, part)]
        else:
            paths = ["%s/%s" % (path, part) for path in paths]
    return [path for path in paths if tree.exists(path)]


def read_switch(tree, pattern):
    """Return the setting of all files of a pattern: one value, or several with commas; None where there is no such file."""
    values = [selected(tree.text(path)) for path in expand(tree, pattern)]
    return ", ".join(sorted({value for value in values if value is not None})) or None
