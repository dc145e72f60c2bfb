# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests of data sets, as sha256sum writes and checks them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ..machine.problems import problem

# Digest, and "  " or " *" for text and binary, which are the same on Linux.
LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)\Z")
MOST = 64 << 20  # bytes


def parse(text, own_name):
    """Return ({name: digest}, problems); own_name: of the manifest itself, which cannot be in it."""
    files, problems = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        found = LINE.match(line)
        name = re.sub(r"^(\./)+", "", found.group(2)) if found else None
        if not found or not _is_inside(name) or name == own_name or files.get(name, found.group(1)) != found.group(1):
            problems.append(problem("stage_no_entry", own_name, line=number))
        else:
            files[name] = found.group(1)
    if not files and not problems:
        problems.append(problem("stage_empty", own_name))
    return {name: digest.lower() for name, digest in files.items()}, problems


def _is_inside(name):
    """Return True if a name stays below the directory of the data set."""
    return name.isprintable() and all(part not in ("", ".", "..") for part in name.split("/"))
