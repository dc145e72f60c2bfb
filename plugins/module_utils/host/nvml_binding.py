# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The binding of NVML that role base installs for the collection's modules."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib
import os
import stat

PATH = "/opt/allreduce/lib/pynvml.py"


def read_binding(tree, owner=0):
    """Return the SHA-256 of the file; None where it is missing, or not the ``owner``'s with mode 0644."""
    try:
        with open(tree.path(PATH), "rb") as stream:
            status = os.fstat(stream.fileno())
            digest = hashlib.sha256(stream.read()).hexdigest()
    except (IOError, OSError):
        return None
    kept = (status.st_uid, stat.S_IMODE(status.st_mode)) == (owner, 0o644)
    return digest if kept else None
