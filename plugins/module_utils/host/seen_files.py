# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files at the paths that roles wrote, and what they asked for there, so that one measurement tells what was changed since.

Of a plain file or a directory the path is noted with the words of what was asked for. Of what only a plan can compare, such as a block,
its declaration is noted, too: where planning it again needs no step, what is there has the words of that declaration. Files of settings
belong to the record of their role: they are as wanted regardless of their owner.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib
import json

from . import boot_notes, config_files, kept_files

NOTES, DUE = "files", "due"
# The entry of a file of which all is told by its path, state, content, mode, owner and group; its checker sees only a new content.
PLAIN = frozenset(["path", "state", "content", "mode", "owner", "group", "validate"])
DEFAULTS = {"state": "file", "mode": "0644", "owner": "root", "group": "root"}
# What follows a file, and tells nothing of it.
FOLLOWING = ("then", "then_if")
# Of a file, several parts can be declared.
PARTS = (("block", "block_name", "allreduce.gpu"), ("settings", "section", "main"))
DECLARED = "declared "


def words(entry):
    """Return state, mode, owner, group and digest of {state, content, mode, owner, group} as one text."""
    if entry["state"] not in ("file", "directory"):
        return entry["state"]
    found = "%(state)s %(mode)s %(owner)s:%(group)s" % entry
    if entry["state"] == "directory":
        return found
    return "%s %s" % (found, hashlib.sha256(config_files.as_bytes(entry["content"])).hexdigest())


def name(entry):
    """Return the path of a declared entry, with the part of the file where it is one: ``/etc/hosts [allreduce.gpu cluster]``."""
    parts = [entry.get(part) or default for option, part, default in PARTS if entry.get(option) is not None]
    return " ".join([entry["path"]] + ["[%s]" % part for part in parts])


def expected(entry):
    """Return the words for what a declared entry asks for: those of its state, or of the declaration where only a plan can compare them."""
    given = {key: value for key, value in entry.items() if value is not None and key not in FOLLOWING}
    entry = dict(DEFAULTS, **given)
    whole = entry["state"] != "file" or "content" in entry
    texts = all(isinstance(entry[key], type("")) for key in entry if key != "validate")
    if whole and texts and set(given) <= PLAIN:
        return words(entry)
    return DECLARED + hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode("ascii")).hexdigest()


def read_seen(tree):
    """Return {name: words} of what is now at the noted paths; what cannot be read is left out."""
    return _seen(tree, _noted(tree))


def changed(tree, seen):
    """Return {name: the words that were asked for} of what is not so any more. seen: what is there now."""
    return {one: noted["words"] for one, noted in _noted(tree).items() if seen.get(one) != noted["words"]}


def unnoted(tree, noted):
    """Return the names of {name: words that are asked for} that no execution noted, as none reached its end; what is absent needs no note."""
    known = _noted(tree)
    absent = {"words": "absent"}
    return {one for one, asked in noted.items() if known.get(one, absent)["words"] != asked}


def due(tree):
    """Return the names of the entries that an execution began to change, and did not reach the end of what follows them."""
    found = boot_notes.read(tree, DUE, boot_notes.KEPT)
    return {one for one in found if isinstance(one, type(""))} if isinstance(found, list) else set()


def note_due(tree, names):
    """Note these names, and no others, as due. Where that cannot be done nothing is lost but the way back from an interruption."""
    try:
        if names:
            boot_notes.write(tree, DUE, sorted(names), boot_notes.KEPT)
        else:
            boot_notes.remove(tree, DUE, boot_notes.KEPT)
    except EnvironmentError:
        return


def note_settings(tree, record, files):
    """Note the files of a role's settings in place of those that it had before; EnvironmentError where that cannot be done.

    record: the name of what the role recorded; files: as the modules of settings have them.
    """
    known = _noted(tree)
    others = {one: noted for one, noted in known.items() if noted.get("record") != record}
    new = {one["path"]: {"words": _setting(one), "entry": None, "record": record} for one in files}
    wanted = dict(others, **new)
    if not wanted:
        boot_notes.remove(tree, NOTES, boot_notes.KEPT)
    elif wanted != known:
        boot_notes.write(tree, NOTES, wanted, boot_notes.KEPT)


def _setting(entry):
    """Return the words for a file of settings, as kept_files tells it."""
    if entry is None:
        return "absent"
    if entry.get("link") is not None:
        return "link " + entry["link"]
    return "file %s %s" % (entry["mode"], hashlib.sha256(config_files.as_bytes(entry["content"])).hexdigest())


def note(tree, noted, entries):
    """Add {name: words that are asked for} to the notes, and return what is there. Where they cannot be written nothing is lost.

    entries: as module config_files has them, with all of their options
    """
    declared = {name(entry): entry for entry in entries}
    new = {
        one: {"words": asked, "entry": declared[one] if asked.startswith(DECLARED) else None}
        for one, asked in noted.items()
        if one in declared
    }
    known = _noted(tree)
    if any(one not in known or known[one] != new[one] for one in new):
        try:
            boot_notes.write(tree, NOTES, dict(known, **new), boot_notes.KEPT)
        except EnvironmentError:
            return {}
    return _seen(tree, new)


def _seen(tree, notes):
    found = {}
    for one, noted in notes.items():
        try:
            found[one] = _found(tree, one, noted)
        except (
            EnvironmentError,
            KeyError,
            TypeError,
            ValueError,
        ):  # also what another release of this collection noted
            continue
    return found


def _found(tree, path, noted):
    if noted["entry"] is not None:
        return _planned(tree, noted)
    if "record" in noted:
        return _setting(kept_files.read(tree, path))
    return words(config_files.read(tree.path(path)))


def _planned(tree, declared):
    """Return the words of a declaration that holds, else ``differs``."""
    entry = dict(declared["entry"], path=tree.path(declared["entry"]["path"]))
    there = config_files.found(entry)
    steps = config_files.plan(config_files.completed(entry, there), there)
    return "differs" if steps else declared["words"]


def _noted(tree):
    found = boot_notes.read(tree, NOTES, boot_notes.KEPT)
    notes = found.items() if isinstance(found, dict) else ()
    return {one: noted for one, noted in notes if isinstance(noted, dict) and {"words", "entry"} <= set(noted)}
