# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An environment of conda, read from its records.

Each package has a record conda-meta/NAME-VERSION-BUILD.json with the files that it put there, written after them; conda-meta/history
gets its entry, which begins with ``==>``, when the whole installation is done (conda, history.py; libmamba, transaction.cpp).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib
import json
import os
import re
import stat

ABSENT, FOREIGN, INTERRUPTED, COMPLETE = "absent", "foreign", "interrupted", "complete"


def read_prefix(tree, prefix):
    """Return {state, packages: {name: {version, build, sha256}}, changed_files: {name: path}}.

    changed_files: of each package that is not as it was installed, the first such file, below the prefix.
    """
    meta = prefix + "/conda-meta"
    if not tree.is_directory(meta):
        state = FOREIGN if tree.names(prefix) or tree.exists(prefix) and not tree.is_directory(prefix) else ABSENT
        return {"state": state, "packages": {}, "changed_files": {}}
    done = re.search(r"(?m)^==> .* <==$", tree.text(meta + "/history") or "")
    records, changed = _records(tree, meta)
    packages = {
        name: {key: record.get(key) for key in ("version", "build", "sha256")} for name, record in records.items()
    }
    changed.update(_changed_files(tree, prefix, records))
    return {"state": COMPLETE if done else INTERRUPTED, "packages": packages, "changed_files": changed}


def _records(tree, meta):
    """Return ({name: record}, {name of a file: path} of those that cannot be read)."""
    records, broken = {}, {}
    for file in tree.names(meta):
        if not file.endswith(".json"):
            continue
        path = tree.path("%s/%s" % (meta, file))
        try:
            with open(path, "rb") as stream:
                record = json.loads(stream.read().decode("utf-8"))
            records[record["name"]] = dict(record, written=os.stat(path).st_mtime)
        except (EnvironmentError, ValueError, KeyError, TypeError):
            broken[file[: -len(".json")]] = "conda-meta/" + file
    return records, broken


def _changed_files(tree, prefix, records):
    """A file that two packages have is one of theirs: the later one has written it."""
    owners = {}
    for record in records.values():
        for entry in _entries(record):
            owners.setdefault(entry["_path"], []).append((entry, record["written"]))
    changed = {}
    for name, record in records.items():
        for entry in _entries(record):
            path = tree.path("%s/%s" % (prefix, entry["_path"]))
            if not any(_is_as_recorded(path, one, written) for one, written in owners[entry["_path"]]):
                changed[name] = entry["_path"]
                break
    return changed


def _entries(record):
    return (record.get("paths_data") or {}).get("paths") or [{"_path": path} for path in record.get("files") or []]


def _is_as_recorded(path, entry, written):
    """A file is read only where it is newer than its record. A prefix that was written into it changes its size; it is not empty then."""
    digest = entry.get("sha256_in_prefix") or entry.get("sha256")
    try:
        found = os.lstat(path)
        if entry.get("path_type") == "softlink":
            return stat.S_ISLNK(found.st_mode)
        if not digest or entry.get("path_type") == "directory":
            return True
        if not stat.S_ISREG(found.st_mode):
            return False
        has_prefix = entry.get("prefix_placeholder") and found.st_size
        if not has_prefix and found.st_size != entry.get("size_in_bytes", found.st_size):
            return False
        return found.st_mtime <= written or _digest(path) == digest
    except EnvironmentError:
        return False


def _digest(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for part in iter(lambda: stream.read(1 << 20), b""):
            digest.update(part)
    return digest.hexdigest()
