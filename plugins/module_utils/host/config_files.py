# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small configuration files and directories as one declaration: read, plan, apply."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import grp
import os
import pwd
import re
import stat
import tempfile

from ..machine.files import flush, make_directories, masked
from ..machine.regular import read_regular
from .as_user import as_user
from .kept_files import readable
from .text_blocks import with_block, without_lines

LONGEST = 16 << 20  # bytes of a configuration file
ABSENT = {"state": "absent", "content": None, "mode": None, "owner": None, "group": None}


def read(path, follow=True):
    """Return {state, content, mode, owner, group} of what is at ``path`` now; raise ValueError for a file that is no small one.

    The state is special for pipes, devices and sockets, of which nothing is read. A link counts as what it points to, but is a link
    where it points to nothing, or is not to be followed.
    """
    if not follow and os.path.islink(path):
        return dict(ABSENT, state="link")
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise
        return dict(ABSENT, state="link") if os.path.islink(path) else dict(ABSENT)
    state = "directory" if stat.S_ISDIR(status.st_mode) else "special"
    found = {"state": state, "content": None, "mode": "%04o" % stat.S_IMODE(status.st_mode)}
    found["owner"] = _name(pwd.getpwuid, status.st_uid)
    found["group"] = _name(grp.getgrgid, status.st_gid)
    if stat.S_ISREG(status.st_mode):
        found.update(state="file", content=read_regular(path, LONGEST, follow=True).decode("utf-8", "surrogateescape"))
    return found


def as_bytes(content):
    """Return the bytes of a content; those of other tools that are not UTF-8 stay as they were read."""
    return content.encode("utf-8", "surrogateescape")


def found(wanted):
    """Return the present state of a declared entry, as its future owner sees it."""
    if not wanted.get("as_owner"):
        return read(wanted["path"], wanted["follow"])
    try:
        return as_user(wanted["owner"], lambda: read(wanted["path"], wanted["follow"]))
    except KeyError:  # in check mode, before the user is made
        return dict(ABSENT)


def _name(lookup, number):
    try:
        return lookup(number)[0]
    except KeyError:
        return str(number)


def plan(wanted, found):
    """Return the steps from ``found`` to ``wanted`` (remove, make_directory, write, set_attributes).

    Raise ValueError if impossible.
    """
    if wanted["state"] == "absent":
        if found["state"] == "directory":
            raise ValueError("%(path)s is a directory; only files are removed: remove it by hand" % wanted)
        return ["remove"] if found["state"] != "absent" else []
    if found["state"] == "link" and not wanted.get("follow", True):
        raise ValueError("%(path)s is a symbolic link where a %(state)s belongs: remove it" % wanted)
    if found["state"] == "special" or {wanted["state"], found["state"]} == {"file", "directory"}:
        there = "a pipe, device or socket" if found["state"] == "special" else "a " + found["state"]
        raise ValueError("%s is %s where a %s belongs: move it away" % (wanted["path"], there, wanted["state"]))
    steps = []
    if wanted["state"] == "directory" and found["state"] != "directory":
        steps.append("make_directory")
    if wanted["state"] == "file" and found["content"] != wanted["content"]:
        steps.append("write")
    if any(found[key] != wanted[key] for key in ("mode", "owner", "group")):
        steps.append("set_attributes")
    return steps


def completed(wanted, found):
    """Return ``wanted`` with the whole content that its settings, or its block and lines, make of what was found."""
    text = found["content"] or ""
    if wanted["state"] != "file" or wanted["content"] is not None:
        return wanted
    if wanted["settings"] is not None:
        return dict(wanted, content=with_settings(text, wanted["section"], wanted["settings"]))
    if not wanted["block"].strip():  # nothing of ours is left: the file is the other tool's, and none is made for it
        kept = {"file": ("mode", "owner", "group"), "absent": ("state",)}.get(found["state"], ())
        wanted = dict(wanted, **{key: found[key] for key in kept})
    text = with_block(text, wanted["block_name"], wanted["block"], wanted["block_first"])
    return dict(wanted, content=without_lines(text, wanted["commented_out"]) if wanted["commented_out"] else text)


def with_settings(text, section, settings):
    """Return the text of an INI file in which SECTION has these settings and the rest is as it was.

    An empty value removes one.
    """
    left = {key: str(value) for key, value in settings.items() if value not in (None, "")}
    lines, inside, place = [], False, None
    for line in text.splitlines():
        if re.match(r"\s*\[.*\]\s*$", line):
            inside = line.strip() == "[%s]" % section
        key, dummy, value = line.partition("=")
        if inside and key.strip() in settings:
            wanted = left.pop(key.strip(), None)
            if wanted is None:
                continue
            line = line if value.strip() == wanted else "%s=%s" % (key.strip(), wanted)
        lines.append(line)
        if inside and place is None:
            place = len(lines)
    if left:
        if place is None:
            lines.append("[%s]" % section)
            place = len(lines)
        lines[place:place] = ["%s=%s" % pair for pair in sorted(left.items())]
    return "".join(line + "\n" for line in lines)


def diff(wanted, found, steps):
    """Return the difference that Ansible shows for one entry with ``--diff``; content only where it changes."""
    before, after = "", ""
    if "write" in steps or "remove" in steps:
        before, after = readable(found["content"] or ""), readable(wanted["content"] or "")
    if "set_attributes" in steps or "make_directory" in steps:
        before, after = _heading(found) + before, _heading(wanted) + after
    return {"before_header": wanted["path"], "after_header": wanted["path"], "before": before, "after": after}


def _heading(entry):
    return "# absent\n" if entry["state"] == "absent" else "# %(state)s %(mode)s %(owner)s:%(group)s\n" % entry


def apply(wanted, steps, write, label=None):
    """Take the steps; ``write(path, content)`` puts a whole file in place at once, where root does it.

    ``label(path)`` gives a new directory the label that SELinux's policy has for it.
    """
    if steps and wanted.get("as_owner"):
        as_user(wanted["owner"], lambda: _take(wanted, steps, _replace, label))
    else:
        _take(wanted, steps, write, label)


def _replace(path, content):
    handle, new = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(as_bytes(content))
        flush(new)
        os.rename(new, path)
    except (OSError, ValueError):
        os.unlink(new)
        raise


def _take(wanted, steps, write, label):
    path, make = wanted["path"], os.makedirs if wanted.get("as_owner") else make_directories
    if "remove" in steps:
        os.unlink(path)
    if "make_directory" in steps:
        make(path)
        if label:
            label(path)
    if "write" in steps:
        if not os.path.isdir(os.path.dirname(path)):
            make(os.path.dirname(path))
        with masked(~int(wanted["mode"], 8) & 0o777):  # what is to be secret never is a file that others can read
            write(path, wanted["content"])
    if steps and wanted["state"] != "absent":
        os.chown(path, pwd.getpwnam(wanted["owner"]).pw_uid, grp.getgrnam(wanted["group"]).gr_gid)
        os.chmod(path, int(wanted["mode"], 8))
