# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry the wheels of a Python environment from one node to another: download them on one, copy them to the others.

The controller tells names and SHA-256 of the wheels from the lock that it keeps, so that no carrier of them has to be trusted:
neither the index, nor the node that downloaded them, nor the account over which they come. There is no archive: what travels is the
wheels one after another, and a node that gets them knows where each one ends.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from urllib.parse import urlsplit, urlunsplit

from ..machine.files import make_directories
from ..machine.problems import problem
from ..machine.sizes import free_words, needed_words
from . import download

WHEELS, ENVIRONMENTS = "/opt/allreduce/cache/environments", "/opt/allreduce/envs"
# No one answers a question; a peer that is gone is noticed.
SSH = ("ssh", "-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15")
# A connection that brings neither a whole wheel nor this number of bytes has failed, and after this number of failures the fetch ends.
ATTEMPTS, PROGRESS = 3, 1 << 20
# Seconds without a byte, after which a connection counts as broken, and bytes a second that are too few for the whole; a peer may
# answer and yet send nothing, or nearly nothing.
SILENCE, PATIENCE, PACE = 120, 600, 1 << 18
CHUNK = 1 << 20
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+]*(-[A-Za-z0-9_.+]+){4,5}\.whl")
DIGEST = re.compile(r"[0-9a-f]{64}")
# Of one wheel and of all; the largest known have 4 GiB, an environment about 6.
LARGEST, MOST, LARGEST_SUM = 16 << 30, 2000, 64 << 30
SENTENCES = {
    "wheels_invalid": "{subject} is not a wheel to carry: name, SHA-256 or size is wrong",
    "wheels_no_space": "{subject} has {free} free, and {needed} are needed: free some space or put a larger disk there",
    "wheels_disk": "{subject} cannot be written to ({reason}): free some space or put a larger disk there",
    "wheels_not_downloaded": "{subject} could not be downloaded: {reason}",
    "wheels_not_copied": "The wheels of environment {subject} could not be copied from {address}: {reason}",
    "wheels_changed": "{subject} that {address} sent does not have the SHA-256 of the lock",
}

SIZES = {"free": free_words, "needed": needed_words}


class WheelsError(Exception):
    """The reason why wheels were not carried. ``problem``: its record, which the text describes."""

    def __init__(self, code, subject, **detail):
        words = {key: SIZES[key](value) if key in SIZES else value for key, value in detail.items()}
        super(WheelsError, self).__init__(SENTENCES[code].format(subject=subject, **words))
        self.problem = problem(code, subject, **detail)


class Place:
    """The directory with the wheels of an environment."""

    def __init__(self, name, directory=WHEELS):
        self.name, self.directory = name, os.path.join(directory, name)

    def path(self, wheel):
        return os.path.join(self.directory, wheel["file"])


def check(wheels, sized=True):
    """Raise WheelsError unless these are wheels to carry, [{file, sha256, bytes}] with other names each."""
    names = set()
    for one in wheels:
        name, size = str(one.get("file")), one.get("bytes")
        valid = NAME.fullmatch(name) and len(name) <= 200 and DIGEST.fullmatch(str(one.get("sha256")))
        if sized:
            valid = valid and isinstance(size, int) and not isinstance(size, bool) and 0 < size <= LARGEST
        if not valid or name in names:
            raise WheelsError("wheels_invalid", ascii(name[:80]))
        names.add(name)
    if len(wheels) > MOST or (sized and sum(one["bytes"] for one in wheels) > LARGEST_SUM):
        raise WheelsError("wheels_invalid", "a list of %d wheels" % len(wheels))


def fetch(place, wheels, sources, proxies, environments=ENVIRONMENTS):
    """Download the wheels, [{file, sha256, url}]; return them with their sizes. Raise WheelsError or OSError.

    Where the index told their sizes, nothing is downloaded unless there is room for them.

    sources: addresses with the user name and password for those that need them
    """
    check(wheels, sized=False)
    _prepare(place, wheels)
    left = [one for one in wheels if download.sha256(place.path(one)) != one["sha256"]]
    _make_room(place, sum(one.get("bytes") or 0 for one in left), environments)
    for one in left:
        part = place.path(one) + ".part"
        fault = download.fetch(with_password(one["url"], sources), part, proxies)
        if fault and fault["code"] == "disk":
            remove(place)
            raise WheelsError("wheels_disk", place.directory, reason=fault["detail"])
        reason = fault["detail"] if fault else "it does not have the SHA-256 of the lock"
        if fault or download.sha256(part) != one["sha256"]:
            raise WheelsError("wheels_not_downloaded", one["file"], reason=download.without_password(reason))
        _put(part, place.path(one))
    return [dict(one, bytes=os.path.getsize(place.path(one))) for one in wheels]


def with_password(url, sources):
    """Return the address with the user name and password that one of the sources has for its host; uv leaves them out."""
    wanted = urlsplit(url)
    for source in sources:
        found = urlsplit(source)
        credentials, _at, host = found.netloc.rpartition("@")
        if credentials and (found.scheme, host) == (wanted.scheme, wanted.netloc):
            return urlunsplit(wanted._replace(netloc=found.netloc))
    return url


def copy(place, wheels, address, user, environments=ENVIRONMENTS):
    """Copy the wheels, [{file, sha256, bytes}], from ADDRESS over SSH as USER, from where an interrupted run stopped.

    Raise WheelsError or OSError. What does not have its SHA-256 is never in its place.
    """
    check(wheels)
    _prepare(place, wheels)
    left = [one for one in wheels if download.sha256(place.path(one)) != one["sha256"]]
    _make_room(place, sum(one["bytes"] for one in left), environments)
    failures, again = 0, set()
    end = time.monotonic() + PATIENCE + sum(one["bytes"] for one in left) / PACE
    while left:
        had = len(left), _length(place.path(left[0]) + ".part")
        try:
            reason = _receive(place, left, address, user, end)
        except EnvironmentError as error:
            if error.errno not in download.DISK:
                raise
            raise WheelsError("wheels_disk", place.directory, reason=str(error))
        if left and _length(place.path(left[0]) + ".part") >= left[0]["bytes"]:
            # Left by a run that was to get another wheel, or damaged: once more from the beginning.
            os.unlink(place.path(left[0]) + ".part")
            if left[0]["file"] in again:
                raise WheelsError("wheels_changed", left[0]["file"], address=address)
            again.add(left[0]["file"])
        elif left:
            came = _length(place.path(left[0]) + ".part") - had[1]
            failures = failures + 1 if had[0] == len(left) and came < PROGRESS else 0
            if failures == ATTEMPTS or time.monotonic() > end:
                raise WheelsError("wheels_not_copied", place.name, address=address, reason=reason)


def remove(place):
    """Remove the wheels; tell whether there were any."""
    found = is_there(place)
    if os.path.islink(place.directory) or os.path.isfile(place.directory):
        os.unlink(place.directory)
    elif found:
        shutil.rmtree(place.directory)
    return found


def is_there(place):
    return os.path.lexists(place.directory)


def _prepare(place, wheels):
    """Make the directory, with no file but these wheels and what is there of them."""
    if os.path.islink(place.directory) or not os.path.isdir(place.directory):
        remove(place)
        make_directories(place.directory)
    names = {one["file"] for one in wheels}
    for entry in os.listdir(place.directory):
        path = os.path.join(place.directory, entry)
        name = entry[: -len(".part")] if entry.endswith(".part") else entry
        if name not in names or os.path.islink(path) or not os.path.isfile(path):
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


def _put(part, path):
    os.chmod(part, 0o644)
    os.rename(part, path)


def _make_room(place, needed, environments):
    """Raise WheelsError where there is no room for the wheels, and for the twice as much that becomes of them.

    uv unpacks it next to the wheels, and copies it where the environments are on another file system.
    """
    counted = set()
    for directory, times in ((place.directory, 3), (environments, 2)):
        there = _existing(directory)
        device, found = os.stat(there).st_dev, os.statvfs(there)
        free = found.f_bavail * found.f_frsize
        if device not in counted and free < times * needed:
            raise WheelsError("wheels_no_space", directory, free=free, needed=times * needed)
        counted.add(device)


def _existing(directory):
    """Return the directory, or the nearest above it that is there."""
    while not os.path.isdir(directory) and directory != os.path.dirname(directory):
        directory = os.path.dirname(directory)
    return directory


def _receive(place, left, address, user, end):
    """Read the wheels of the list one after another, and take each from it that is there; return what the connection said in the end."""
    begun = _length(place.path(left[0]) + ".part")
    directory = place.directory.replace("'", "'\\''")
    names = " ".join("'%s'" % one["file"] for one in left)
    command = "cd '%s' && cat -- %s | tail -c +%d" % (directory, names, begun + 1)
    with tempfile.TemporaryFile() as errors:
        run = subprocess.Popen(
            ("runuser", "-u", user, "--") + SSH + (address, command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            start_new_session=True,
        )
        silent = True  # for the end, where reading fails
        try:
            silent = _read(run.stdout.fileno(), place, left, end)
        finally:
            run.stdout.close()
            if left and not silent and run.poll() is None:
                _end(run, 15)
            _kill(run)
        return "it sent too little" if silent else _last_words(errors, run.returncode)


def _read(stream, place, left, end):
    """Write the bytes of a stream to the wheels of the list, each to its end; tell whether it fell silent, or had not ended at END."""
    while left:
        wheel, part = left[0], place.path(left[0]) + ".part"
        with open(part, "ab") as out:
            missing = wheel["bytes"] - out.tell()
            while missing > 0:
                if time.monotonic() > end or not select.select([stream], [], [], SILENCE)[0]:
                    return True
                content = os.read(stream, min(CHUNK, missing))
                if not content:
                    return False
                out.write(content)
                missing -= len(content)
        if missing < 0 or download.sha256(part) != wheel["sha256"]:
            return False
        _put(part, place.path(wheel))
        left.pop(0)
    return False


def _end(run, seconds):
    """Give a process that sends no more the time to say why."""
    try:
        run.wait(seconds)
    except subprocess.TimeoutExpired:
        pass


def _kill(run):
    """Kill runuser with its ssh, which would else wait for a node that sends nothing."""
    if run.poll() is None:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()


def _last_words(errors, status):
    """Return the last line that a connection wrote, whatever the other node made of it."""
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4096))
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    said = "".join(char if char.isprintable() else "?" for char in lines[-1])[:200] if lines else ""
    return said or "exit code %d" % status


def _length(path):
    try:
        return os.path.getsize(path)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        return 0
