# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SSH key pair of a user, and the next one that is to take its place. All of this is done with the user's rights.

The comment of a pair ends with the name of the rotation that made it: what is known of a pair changes with the pair.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import os
import subprocess

from ..machine.files import flush, replace
from ..machine.regular import open_regular, read_regular

KINDS = ("ed25519", "ecdsa", "rsa")
NEXT = ".next"
# A public key of 16384 bits has 3 KiB.
LONGEST = 16384


def path_of(directory, kind):
    return "%s/id_%s" % (directory, kind)


def comment_of(comment, rotation):
    return "%s %s" % (comment, rotation) if rotation else comment


def public_key(path):
    """Return the text of the public key next to a private one; None where there is none, or where one of both files is empty."""
    if _is_empty(path):
        return None
    try:
        return read_regular(path + ".pub", LONGEST, follow=True).decode("utf-8", "replace") or None
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise


def _is_empty(path):
    """Return True for what a power cut leaves of a file that was not on the disk yet."""
    return os.path.isfile(path) and not os.path.getsize(path)


def comment_in(text):
    """Return the comment of a public key, empty without one."""
    words = (text or "").split(None, 2)
    return words[2].strip() if len(words) > 2 else ""


def describe(directory, kind, comment, rotation):
    """Return {public_key, next_public_key, rotated: whether the pair is this rotation's}."""
    path = path_of(directory, kind)
    text = public_key(path)
    rotated = text is not None and comment_in(text) == comment_of(comment, rotation)
    following = None if rotated else public_key(path + NEXT)
    expected = comment_in(following) == comment_of(comment, rotation)
    return {
        "public_key": text,
        "next_public_key": following if rotation and expected else None,
        "rotated": rotated or not rotation,
    }


def plan(found, state, rotation):
    """Return the steps: make, or make_next, or replace."""
    if found["public_key"] is None:
        return ["make"]
    if not rotation or found["rotated"] or state == "present":
        return []
    if state == "next":
        return [] if found["next_public_key"] else ["make_next"]
    return ["replace"]


def apply(steps, directory, kind, comment, rotation, label=None):
    """Take the steps, after what an interrupted run has left; return whether anything changed."""
    path = path_of(directory, kind)
    if not os.path.isdir(directory):
        os.mkdir(directory, 0o700)
        if label:
            label(directory)
    settled = settle(path, rotation)
    if "make" in steps:
        _make(path, kind, comment_of(comment, rotation))
    if "make_next" in steps:
        _remove(path + NEXT)
        _make(path + NEXT, kind, comment_of(comment, rotation))
    if "replace" in steps:
        if public_key(path + NEXT) is None:
            raise ValueError("%s%s.pub is missing: run again from the beginning" % (path, NEXT))
        # The private one comes last: where it still stands alone, settle() knows that this was interrupted here.
        os.rename(path + NEXT + ".pub", path + ".pub")
        os.rename(path + NEXT, path)
    return settled or bool(steps)


def settle(path, rotation):
    """Finish a replacement that was interrupted between its two files; remove what is left of a rotation that is not wanted.

    Return True if there was anything to do.
    """
    following = [name for name in (path + NEXT, path + NEXT + ".pub") if os.path.lexists(name)]
    if not following or (rotation and len(following) == 2):
        return False
    if following == [path + NEXT] and _public_part(path + NEXT) == (public_key(path) or "").split()[:2]:
        os.rename(path + NEXT, path)
    _remove(path + NEXT)
    return True


def remove(directory, comment, dry=False):
    """Remove, or only name, the files of pairs with this comment, of whatever rotation."""
    gone = []
    for kind in KINDS:
        for path in (path_of(directory, kind), path_of(directory, kind) + NEXT):
            written = comment_in(public_key(path))
            if written == comment or written.startswith(comment + " "):
                gone += [path, path + ".pub"]
                if not dry:
                    _remove(path)
    return gone


def _remove(path):
    for name in (path, path + ".pub"):
        try:
            os.unlink(name)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise


def _make(path, kind, comment):
    """Make a pair; of one that a power cut left with an empty file, the private key is kept where it is whole."""
    for name in (path, path + ".pub"):
        if _is_empty(name):
            os.unlink(name)
    public = _public_part(path)
    if public:
        replace(path + ".pub", " ".join(public + [comment]) + "\n")
        return
    _keygen(["-q", "-t", kind, "-N", "", "-C", comment, "-f", path])
    flush(path)
    flush(path + ".pub")


def _public_part(path):
    """Return the kind and the key that belong to a private key; nothing where it cannot be read."""
    try:
        open_regular(path, follow=True).close()  # ssh-keygen would wait for a pipe
        return _keygen(["-y", "-P", "", "-f", path]).split()[:2]
    except (EnvironmentError, ValueError):
        return []


def _keygen(arguments):
    """Return the output of ssh-keygen; it asks nothing."""
    process = subprocess.Popen(
        ["ssh-keygen"] + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output = process.communicate()[0].decode("utf-8", "replace")
    if process.returncode:
        raise ValueError("ssh-keygen cannot make or read the key: %s" % output.strip())
    return output
