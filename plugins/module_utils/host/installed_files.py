# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a Python package's files with the RECORD that its installer wrote.

RECORD has a line "path,sha256=digest,bytes" for each file; what comes into being later, such as compiled bytecode, has no digest
(https://packaging.python.org/en/latest/specifications/recording-installed-packages/).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import base64
import csv
import hashlib
import os
import stat


def changed_file(tree, site, entry):
    """Return the path, relative to SITE, of the first file that is not what RECORD in SITE/ENTRY says; None where all are.

    A file is read only where it is newer than RECORD, which the installer writes last: thousands of files, gigabytes in all, are
    otherwise compared by their sizes.
    """
    record = os.path.join(tree.path(site), entry, "RECORD")
    try:
        written = os.stat(record).st_mtime
        with open(record, "r", encoding="utf-8", errors="replace", newline="") as stream:
            rows = [row for row in csv.reader(stream) if len(row) == 3 and _is_kept(row[0], row[1])]
    except (IOError, OSError, csv.Error):
        return entry + "/RECORD"
    for path, digest, size in rows:
        if not _is_as_recorded(os.path.join(tree.path(site), path), digest, size, written):
            return path
    return None


def _is_kept(path, digest):
    """Return True if only an installer writes the file; bytecode that a wheel brings is rewritten by Python."""
    return digest.startswith("sha256=") and not path.endswith(".pyc")


def _is_as_recorded(path, digest, size, written):
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            return stat.S_ISLNK(found.st_mode)
        if size.isdigit() and found.st_size != int(size):
            return False
        return found.st_mtime <= written or _digest(path) == digest
    except (IOError, OSError):
        return False


def _digest(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for part in iter(lambda: stream.read(1 << 20), b""):
            digest.update(part)
    return "sha256=" + base64.urlsafe_b64encode(digest.digest()).decode("ascii").rstrip("=")
