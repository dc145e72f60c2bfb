# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's lists of hosts, such as gpu[01-12,20],login: fold names into one, and tell whether one has a name.

Slurm's src/common/hostlist.c: names are separated by commas outside of brackets; a range has the width of its first number.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# Numbers with more digits are a part of the name.
_NUMBERED = re.compile(r"^(.*?)(\d{1,9})$")
_PART = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_BRACKETS = re.compile(r"\[([^\]]*)\]")


def fold(names):
    """Return one list of the names, labels of host names; numbers at their ends become ranges: gpu[9-10], gpu[09-10]."""
    found = {}
    for name in sorted(set(names)):
        match = _NUMBERED.match(name)
        prefix, digits = match.groups() if match else (name, "")
        found.setdefault(prefix, []).append(digits)
    return ",".join(_folded(prefix, found[prefix]) for prefix in sorted(found))


def _folded(prefix, endings):
    """Return the list of names that begin alike; an empty ending is the name without a number."""
    plain = [prefix] if "" in endings else []
    digits = [ending for ending in endings if ending]
    ranges = ranges_of(digits)
    if len(digits) > 1:
        plain.append("%s[%s]" % (prefix, ",".join(ranges)))
    else:
        plain += [prefix + ending for ending in digits]
    return ",".join(plain)


def ranges_of(digits):
    """Return [09-10, 12] of numbers as they are written."""
    found = []
    for one in sorted(digits, key=lambda text: (int(text), len(text))):
        if found and one == str(int(found[-1][1]) + 1).zfill(len(found[-1][0])):
            found[-1][1] = one
        else:
            found.append([one, one])
    return [first if first == last else "%s-%s" % (first, last) for first, last in found]


def has(hosts, name):
    """Return True if a list of hosts, which any user may have written, has a name. Nothing is unfolded."""
    return any(_matches(part, name) for part in _PART.findall(hosts))


def _matches(part, name):
    pieces = _BRACKETS.split(part)
    pattern = "".join(r"(\d+)" if place % 2 else re.escape(piece) for place, piece in enumerate(pieces))
    match = re.match(pattern + "$", name)
    return bool(match) and all(map(_is_in, match.groups(), pieces[1::2]))


def _is_in(digits, ranges):
    for one in ranges.split(","):
        first, dash, last = one.strip().partition("-")
        if first.isdigit() and (last.isdigit() or not dash):
            if int(first) <= int(digits) <= int(last or first) and digits == str(int(digits)).zfill(len(first)):
                return True
    return False
