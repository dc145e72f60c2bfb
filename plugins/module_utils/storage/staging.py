# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy a data set to a node and verify it: next to its place, which it takes only when it is complete."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import fcntl
import hashlib
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor

from ..host.download import sha256
from ..machine.problems import problem
from ..machine.regular import IrregularError, open_regular
from . import manifest
from .sources import source_of

UMASK = 0o022
MOST_PROBLEMS = 5


class Place:
    """The place of a data set (its manifest among its files says that it is complete), and where it is put together."""

    def __init__(self, directory, name, manifest_name):
        self.directory, self.manifest_name = directory, manifest_name
        self.target = os.path.join(directory, name)
        self.staging = os.path.join(directory, ".%s.staging" % name)
        self.replaced = os.path.join(directory, ".%s.replaced" % name)

    def manifest(self):
        """Return the manifest of what is there; None without one."""
        try:
            with open_regular(os.path.join(self.target, self.manifest_name), follow=True) as stream:
                return stream.read(manifest.MOST)
        except (EnvironmentError, IrregularError):
            return None

    def problems(self, needs_mount):
        """Return the reasons why nothing can be put there or taken away."""
        if needs_mount and not os.path.ismount(self.directory):
            return [problem("stage_not_mounted", self.directory)]
        if not os.access(self.directory, os.W_OK | os.X_OK):
            return [problem("stage_not_writable", self.directory)]
        foreign = os.path.lexists(self.target) and self.manifest() is None
        return [problem("stage_foreign", self.target, manifest=self.manifest_name)] if foreign else []


def stage(wanted, check=False):
    """Return {problems, changed, files, copied, bytes, digest, before}; copied, bytes: what is not there yet."""
    os.umask(UMASK)
    place = Place(wanted["directory"], wanted["name"], wanted["manifest"])
    before = place.manifest()
    answer = {"problems": place.problems(wanted["needs_mount"]), "changed": False, "before": _digest(before)}
    if answer["problems"]:
        return answer
    known = manifest.parse(_text(before), place.manifest_name)[0] if before else {}
    sound = _sound(place, known, wanted["verify"])
    if before and len(sound) == len(known) and _digest(before) == wanted["checksum"]:
        answer.update(digest=_digest(before), files=len(known), copied=0, bytes=0)
        return dict(answer, changed=_tidy(place, check))
    source = source_of(wanted["source"])
    text, files, answer["problems"] = _wanted(source, wanted)
    if answer["problems"]:
        return answer
    kept = {name for name in sound if known[name] == files.get(name)}
    answer.update(digest=_digest(text), files=len(files), copied=0, bytes=0)
    if _digest(before) == answer["digest"] and len(kept) == len(files):
        return dict(answer, changed=_tidy(place, check))
    missing = sorted(set(files) - kept - _staged(place, files))
    sizes, answer["problems"] = _sizes(source, missing, place, wanted["jobs"])
    answer.update(changed=not answer["problems"], copied=len(missing), bytes=sum(sizes))
    if not check and not answer["problems"]:
        answer["problems"] = _apply(place, source, text, files, kept, wanted["jobs"])
    return answer


def unstage(wanted, check=False):
    """Take a data set away, and what an interrupted run left of it; return {problems, changed, before}."""
    place = Place(wanted["directory"], wanted["name"], wanted["manifest"])
    answer = {"problems": place.problems(wanted["needs_mount"]), "changed": False, "before": _digest(place.manifest())}
    there = [one for one in (place.target, place.staging, place.replaced) if os.path.lexists(one)]
    if answer["problems"] or not there:
        return answer
    if not check:
        if place.target in there:
            _remove(place.replaced)
            os.rename(place.target, place.replaced)  # half of it is never seen
        for path in (place.replaced, place.staging):
            _remove(path)
    return dict(answer, changed=True)


def _digest(text):
    return None if text is None else hashlib.sha256(text).hexdigest()


def _text(found):
    return found.decode("utf-8", "replace")


def _wanted(source, wanted):
    """Return (bytes of the source's manifest, {name: digest}, problems)."""
    text, why = source.read(wanted["manifest"])
    if text is None:
        return None, {}, [problem("stage_no_manifest", wanted["manifest"], reason=why)]
    if wanted["checksum"] and _digest(text) != wanted["checksum"]:
        return (
            None,
            {},
            [problem("stage_other_manifest", wanted["manifest"], found=_digest(text), expected=wanted["checksum"])],
        )
    files, problems = manifest.parse(_text(text), wanted["manifest"])
    return text, files, problems[:MOST_PROBLEMS]


def _is_file(path):
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except EnvironmentError:
        return False


def _sound(place, known, verify):
    """Return the names whose files are there; with verify those that are what the manifest says."""
    paths = {name: os.path.join(place.target, name) for name in known}
    return {name for name, path in paths.items() if _is_file(path) and (not verify or sha256(path) == known[name])}


def _staged(place, files):
    """Return the names that an interrupted run copied."""
    paths = {name: os.path.join(place.staging, name) for name in files}
    return {name for name, path in paths.items() if _is_file(path) and sha256(path) == files[name]}


def _sizes(source, names, place, jobs):
    """Return (bytes of each file, problems): files that the source lacks, or that there is no room for."""
    with ThreadPoolExecutor(jobs) as pool:
        sizes = list(pool.map(source.size, names))
    lacking = [problem("stage_no_file", name) for name, size in zip(names, sizes) if size is None]
    if lacking:
        return [], lacking[:MOST_PROBLEMS]
    found = os.statvfs(place.directory)
    free = found.f_bavail * found.f_frsize
    short = [problem("stage_no_space", place.directory, needed=sum(sizes), free=free)] if sum(sizes) > free else []
    return sizes, short


def _apply(place, source, text, files, kept, jobs):
    """Put the data set together and move it to its place; return problems."""
    _remove(place.replaced)
    os.makedirs(place.staging, exist_ok=True)
    lock = os.open(place.staging, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _clear(place.staging, files)
        with ThreadPoolExecutor(jobs) as pool:
            problems = [
                one
                for one in pool.map(lambda name: _take(place, source, name, files[name], name in kept), files)
                if one
            ]
        if problems:
            return problems[:MOST_PROBLEMS]
        with open(os.path.join(place.staging, place.manifest_name), "wb") as stream:
            stream.write(text)
            _flush(stream)
        _move(place)
    except BlockingIOError:
        return [problem("stage_busy", place.staging)]
    finally:
        os.close(lock)
    return []


def _clear(staging, files):
    """Remove what an interrupted run of another version of the data set left."""
    for folder, _folders, names in os.walk(staging):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, staging) not in files:
                os.unlink(path)


def _take(place, source, name, digest, is_kept):
    """Bring one file to the staging directory, unless it is there; return a problem or None."""
    path = os.path.join(place.staging, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if is_kept and not os.path.lexists(path):
        os.link(os.path.join(place.target, name), path)
    if sha256(path) != digest:
        if os.path.lexists(path):
            os.unlink(path)  # what is linked is never written to
        why = source.fetch(name, path)
        if why:
            return problem("stage_not_fetched", name, reason=why)
        if sha256(path) != digest:
            os.unlink(path)
            return problem("stage_differs", name)
    with open(path, "rb") as stream:
        _flush(stream)
    return None


def _flush(stream):
    """Have it on the disk before the data set is in its place: a crash leaves no empty files."""
    stream.flush()
    os.fsync(stream.fileno())


def _move(place):
    if os.path.lexists(place.target):
        os.rename(place.target, place.replaced)
    os.rename(place.staging, place.target)
    _remove(place.replaced)


def _tidy(place, check):
    """Remove the version before, which a run that ended while it was removed has left; return whether there was one."""
    found = os.path.lexists(place.replaced)
    if found and not check:
        _remove(place.replaced)
    return found


def _remove(path):
    if os.path.islink(path):
        os.unlink(path)
    elif os.path.lexists(path):
        shutil.rmtree(path)
