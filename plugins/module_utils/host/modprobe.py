# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of modprobe's files that override those of this collection's files at the next load of a module."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from .sysctl import chosen_files

# Of files with one name, only that of the first directory counts: modprobe.d(5).
DIRECTORIES = (
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
)
OURS = re.compile(r"/etc/modprobe\.d/allreduce-[^/]*\.conf$")


def read_overrides(tree):
    """Return [{file, line, module, parameter, value, ours}] of other tools' lines that win over one of ours.

    All options of a module are given to it in the order of the files, and of one parameter the last value counts: those read before ours
    do no harm.
    """
    paths = chosen_files(tree, DIRECTORIES)
    if not any(OURS.match(path) for path in paths):
        return []
    ours, found = {}, {}
    for path in paths:
        for number, module, parameter, value in _settings(tree.text(tree.resolve(path)) or ""):
            key = (module, parameter)
            if OURS.match(path):
                ours[key] = value
                found.pop(key, None)
            elif key in ours and value != ours[key]:
                found[key] = {"file": path, "line": number, "value": value}
            elif key in ours:
                found.pop(key, None)
    return [dict(one, module=key[0], parameter=key[1], ours=ours[key]) for key, one in sorted(found.items())]


def _settings(text):
    """Yield (line, module, parameter, value); a backslash at the end of a line continues it."""
    for number, line in _lines(text):
        words = line.split()
        if len(words) > 2 and words[0] == "options":
            for word in words[2:]:
                parameter, _equals, value = word.partition("=")
                yield number, words[1].replace("-", "_"), parameter.replace("-", "_"), value.strip("\"'")


def _lines(text):
    begun, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        first = first if begun else number
        if line.endswith("\\"):
            begun += line[:-1] + " "
            continue
        if not (begun + line).lstrip().startswith("#"):
            yield first, begun + line
        begun = ""
