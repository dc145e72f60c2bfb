# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last state that a node was brought to since it booted, so that a measurement tells whether that still holds.

The module that applies a declaration notes it. The one that measures plans it again, as the other would in check mode: where no
step follows, it returns the digest of the declaration, and who declares the same again has nothing to send.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..host import boot_notes, seen_files


def note(tree, name, options, wanted):
    """Note a declaration and its files by the name of its record, or forget it; where that fails nothing is lost.

    options: of the module. Its ``applied`` is the digest to note; without one, or where nothing is to be present, none is kept.
    """
    present = options["state"] == "present"
    try:
        seen_files.note_settings(tree, name, wanted["files"] if present else ())
        if present and options["applied"]:
            boot_notes.write(tree, _note(name), {"digest": options["applied"], "wanted": wanted})
        else:
            boot_notes.remove(tree, _note(name))
    except EnvironmentError:
        pass


def holding(tree, name, settle):
    """Return the digest of what was noted where it still holds, else None. ``settle(wanted)``: what planning it again answers."""
    noted = boot_notes.read(tree, _note(name))
    if not noted:
        return None
    try:
        answer = settle(noted["wanted"])
        return None if answer["changes"] or answer["problems"] else noted["digest"]
    except (EnvironmentError, KeyError, TypeError, ValueError):  # noted by another release of this collection
        return None


def _note(name):
    return "applied/" + name
