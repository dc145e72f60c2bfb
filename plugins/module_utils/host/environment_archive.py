# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry a Python environment from one node to another: pack it, fetch the archive, unpack it in the place of what is there.

Who packs tells the SHA-256 of the archive by way of the controller, so that nobody has to be trusted who only carries it: the
archive comes over SSH as an unprivileged user, whose files on the other node could make that connection say anything.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import hashlib
import os
import shutil
import subprocess
import tarfile

from ..machine.files import make_directories
from ..machine.problems import problem
from .download import sha256

ENVIRONMENTS = "/opt/allreduce/envs"
ARCHIVES = "/opt/allreduce/cache/environments"
# Nobody is there to answer a question; a peer that is gone is noticed.
SSH = ("ssh", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15")
ATTEMPTS = 3
SENTENCES = {
    "archive_no_environment": "There is no environment {subject} to pack",
    "archive_no_space": "{subject} has {free} bytes free, and {needed} are needed",
    "archive_not_fetched": "The archive of environment {subject} could not be fetched from {address}: {reason}",
    "archive_corrupted": "The archive of environment {subject} that {address} sent is not the one that was packed",
    "archive_wrong_member": "The archive of environment {subject} has {member}, which lies outside it",
    "archive_other_interpreter": "Environment {subject} was made with {found} on this node, but with {packed} where it was packed",
}


class ArchiveError(Exception):
    """Why an environment was not carried. ``problem``: its record, which the text describes."""

    def __init__(self, found):
        super(ArchiveError, self).__init__(SENTENCES[found["code"]].format(subject=found["subject"], **found["detail"]))
        self.problem = found


class Place:
    """The paths of an environment and its archive."""

    def __init__(self, name, environments=ENVIRONMENTS, archives=ARCHIVES, directory=None):
        self.name, self.environments, self.archives = name, environments, archives
        self.environment = os.path.join(environments, directory or name)
        self.archive = os.path.join(archives, name + ".tar")
        self.part = self.archive + ".part"

    def aside(self, what):
        """Return a hidden place beside the environment, for as long as it takes."""
        return os.path.join(self.environments, ".%s.%s" % (self.name, what))


def pack(place):
    """Write the archive; return {sha256, bytes}. The same files make the same archive. Raise ArchiveError or OSError."""
    if not os.path.exists(os.path.join(place.environment, "bin", "python")):
        raise ArchiveError(problem("archive_no_environment", place.environment))
    if not os.path.isdir(place.archives):
        make_directories(place.archives)
    _make_room(place, _size(place.environment))
    with open(place.part, "wb") as out:
        os.fchmod(out.fileno(), 0o644)
        writer = _Hashing(out)
        with tarfile.open(fileobj=writer, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for path in _paths(place.environment):
                tar.add(path, os.path.relpath(path, place.environment), recursive=False, filter=_plain)
    os.rename(place.part, place.archive)
    return {"sha256": writer.digest.hexdigest(), "bytes": writer.bytes}


def fetch(place, address, user, packed):
    """Fetch the archive from ADDRESS over SSH as USER, from where an interrupted run stopped; raise ArchiveError or OSError.

    packed: what pack returned there
    """
    if not os.path.isdir(place.archives):
        make_directories(place.archives)
    if sha256(place.archive) == packed["sha256"]:
        return
    # Of another archive, or damaged: once more from the beginning.
    for _attempt in range(2):
        _fetch_rest(place, address, user, packed["bytes"])
        if sha256(place.part) == packed["sha256"]:
            os.rename(place.part, place.archive)
            return
        remove(place)
    raise ArchiveError(problem("archive_corrupted", place.name, address=address))


def unpack(place):
    """Put what is in the archive in the place of the environment; raise ArchiveError or OSError.

    The environment that is there has to be one of the same interpreter, and keeps what it says of it.
    """
    new, old = place.aside("new"), place.aside("old")
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)
    try:
        os.mkdir(new, 0o755)
        _extract(place, new)
        _keep_interpreter(place, new)
        os.rename(place.environment, old)
        os.rename(new, place.environment)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def remove(place):
    """Remove the archive, and what an interrupted run left of one; tell whether there was any."""
    found = [path for path in (place.archive, place.part) if os.path.lexists(path)]
    for path in found:
        os.unlink(path)
    return bool(found)


def is_there(place):
    """Return whether there is an archive, or what an interrupted run left of one."""
    return os.path.lexists(place.archive) or os.path.lexists(place.part)


def _paths(root):
    """Yield everything below ROOT, sorted, but uv's lock."""
    for directory, directories, files in os.walk(root):
        directories.sort()
        for name in sorted(directories + files):
            path = os.path.join(directory, name)
            if path != os.path.join(root, ".lock"):
                yield path


def _size(root):
    return sum(os.lstat(path).st_size for path in _paths(root))


def _plain(member):
    """Leave out the owner, which is root everywhere."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _make_room(place, needed):
    found = os.statvfs(place.archives)
    free = found.f_bavail * found.f_frsize
    if free < needed:
        raise ArchiveError(problem("archive_no_space", place.archives, free=free, needed=needed))


def _fetch_rest(place, address, user, size):
    """Append to what is there until it has SIZE bytes; raise ArchiveError where three attempts bring nothing more."""
    failures = 0
    while _length(place.part) < size:
        had = _length(place.part)
        # Twice what is missing and the environment itself: archive and what is unpacked from it.
        _make_room(place, 2 * size - had)
        tail = "tail -c +%d %s" % (had + 1, place.archive)
        with open(place.part, "ab") as out:
            run = subprocess.Popen(
                ("runuser", "-u", user, "--") + SSH + (address, tail),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                cwd="/",
            )
            said = run.communicate()[1].decode("utf-8", "replace").strip().splitlines()
        if _length(place.part) > size:
            return
        failures = failures + 1 if _length(place.part) == had else 0
        if failures == ATTEMPTS:
            reason = said[-1] if said else "exit code %d" % run.returncode
            raise ArchiveError(problem("archive_not_fetched", place.name, address=address, reason=reason))


def _length(path):
    try:
        return os.path.getsize(path)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        return 0


def _extract(place, new):
    with tarfile.open(place.archive, "r:") as tar:
        # Links may leave the environment, as that to its interpreter does; names may not.
        tar.extraction_filter = lambda member, path: member
        for member in tar:
            if member.name.startswith("/") or ".." in member.name.split("/"):
                raise ArchiveError(problem("archive_wrong_member", place.name, member=member.name))
            tar.extract(member, new, numeric_owner=True)


def _keep_interpreter(place, new):
    """Compare what was unpacked with the environment that is there, of which pyvenv.cfg stays."""
    found, packed = (os.readlink(os.path.join(base, "bin", "python")) for base in (place.environment, new))
    if found != packed:
        raise ArchiveError(problem("archive_other_interpreter", place.name, found=found, packed=packed))
    kept = os.path.join(place.environment, "pyvenv.cfg")
    if os.path.exists(kept):
        shutil.copy2(kept, os.path.join(new, "pyvenv.cfg"))


class _Hashing:
    """A file that is only written, with the SHA-256 and the length of what was."""

    def __init__(self, stream):
        self._stream, self.digest, self.bytes = stream, hashlib.sha256(), 0

    def write(self, data):
        self.digest.update(data)
        self.bytes += len(data)
        return self._stream.write(data)
