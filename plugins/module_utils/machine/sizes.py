# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes in units that people read."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import math


def free_words(size):
    """Return a number of bytes as text, rounded down: ``57 MiB``, ``1.9 GiB``."""
    return _words(size, math.floor)


def needed_words(size):
    """Return a number of bytes as text, rounded up, so that what is needed and a little less than that do not look the same."""
    return _words(size, math.ceil)


def _words(size, rounded):
    if size >= 1 << 30:
        return "%.1f GiB" % (rounded(size * 10 / (1 << 30)) / 10)
    unit, bits = ("MiB", 20) if size >= 1 << 20 else ("KiB", 10)
    return "%d %s" % (rounded(size / (1 << bits)), unit)
