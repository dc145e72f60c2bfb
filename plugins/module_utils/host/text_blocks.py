# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a text file that another tool keeps: a marked block of lines, and lines that are commented out."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re


def with_block(text, name, block, first=False):
    """Return the text with these lines between the marks of ``name``: where they were, else at the end, or ``first``.

    An empty block goes with its marks. They are those of ansible.builtin.blockinfile.
    """
    begin, end = "# BEGIN %s" % name, "# END %s" % name
    kept = text.splitlines()
    marked = [begin] + block.splitlines() + [end] if block.strip() else []
    if begin in kept and end in kept[kept.index(begin) :]:
        start = kept.index(begin)
        kept[start : kept.index(end, start) + 1] = marked
    else:
        place = 0 if first else len(kept)
        kept[place:place] = marked
    return "".join(row + "\n" for row in kept) if kept != text.splitlines() else text


def without_lines(text, pattern):
    """Return the text in which every line that the expression matches as a whole is commented out."""
    expression = re.compile(r"(?:%s)(?=\n?\Z)" % pattern)
    return "".join("# " + row if expression.match(row) else row for row in text.splitlines(True))
