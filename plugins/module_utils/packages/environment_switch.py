# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take a Python environment into use: verify it where it lies, point the link with its name to it, remove older ones.

An environment is a directory .NAME-DIGEST, and NAME a link to the one in use. One that was verified has its lock in it: until then it
is what an interrupted run left.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import os
import shutil

from ..host import probes
from ..machine.files import FileTree, make_directories, replace, write_beside
from ..machine.problems import problem
from ..machine.sizes import free_words
from . import conda_build, environments

PROC = "/proc"
SENTENCES = {
    "environment_missing": "there is no {subject}/bin/python",
    "environment_differs": "it has {package} {found}, and its lock {locked}",
    "environment_changed_file": "{path} of {package} has changed since it was installed",
    "environment_no_start": "{reason}",
    "environment_no_import": "{module} cannot be imported: {reason}",
}


class Place:
    """An environment by its name, and the directory that is to be in use."""

    def __init__(self, name, directory, root=environments.ENVIRONMENTS, locks=environments.LOCKS):
        self.name, self.directory, self.root = name, directory, root
        self.link = os.path.join(root, name)
        self.new = os.path.join(root, directory)
        self.locks = {
            environments.LOCK: os.path.join(locks, name + ".txt"),
            environments.CONDA_LOCK: os.path.join(locks, name + ".conda.txt"),
        }

    def current(self):
        """Return where the link leads, "" where the environment itself is a directory, as before there were links; None without any."""
        if os.path.islink(self.link):
            return os.readlink(self.link)
        return "" if os.path.isdir(self.link) else None

    def is_adopted(self):
        """Return True if the environment in use, a directory of its name, is the one that is to be in use."""
        return self.current() == "" and not os.path.isdir(self.new)


def differs(place, texts):
    """Return True if another directory is in use, or another lock recorded. texts: {file in the environment: text of that lock}"""
    return place.current() != place.directory or any(_text(place.locks[file]) != texts[file] for file in texts)


def diff(place):
    """Return the difference: the directory that is replaced, and the one that replaces it."""
    before = place.current()
    shown = before or ("a directory" if before == "" else "absent")
    return {
        "before": "%s: %s\n" % (place.link, shown),
        "after": "%s: %s\n" % (place.link, place.directory or "a new one"),
    }


def verify(place, options, user):
    """Return the reason why the new environment cannot be used, None where it can. options: those of module environment_switch"""
    if not os.path.exists(os.path.join(place.new, "bin", "python")):
        return problem("environment_missing", place.new)
    packages, changed = environments.read_packages(FileTree("/"), place.new)
    locked = dict((environments.parse_lock(options["lock"]) or {"packages": {}})["packages"], **options["compiled"])
    for package in sorted(set(locked) if options["conda_lock"] else set(locked) | set(packages)):
        if package not in packages or package not in locked or locked[package] not in (None, packages[package]):
            said = {"found": packages.get(package, "not installed"), "locked": _pinned(locked, package)}
            return problem("environment_differs", place.new, package=package, **said)
    for package in sorted(changed):
        return problem("environment_changed_file", place.new, package=package, path=changed[package])
    return _tried(place, options["modules"], user or "nobody")


def _pinned(locked, package):
    return locked[package] or "any version" if package in locked else "none"


def _tried(place, modules, user):
    answers = probes.probe_environment(place.directory, modules, user, place.root)
    if "error" in answers and not isinstance(answers["error"], dict):
        return problem("environment_no_start", place.new, reason=answers["error"])
    failed = [(module, answers[module]["error"]) for module in modules if answers.get(module, {}).get("error")]
    return problem("environment_no_import", place.new, module=failed[0][0], reason=failed[0][1]) if failed else None


def explain(place, found):
    """Return the problem as a sentence, with the environment that stays in use."""
    why = SENTENCES[found["code"]].format(subject=found["subject"], **found["detail"])
    current = place.current()
    if current == place.directory:
        return "Environment %s, which is in use, does not work: %s." % (place.name, why)
    return "Environment %s was not replaced, as the new one does not work: %s; %s." % (place.name, why, _stays(place))


def explain_error(place, error):
    """Return the reason why the file system did not let an environment be taken into use, as a sentence."""
    said, stays = "Environment %s was not activated" % place.name, "; " + _stays(place)
    if place.current() == place.directory:
        said, stays = "Environment %s is in use, but its lock was not recorded" % place.name, ""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not error.filename:
        return "%s: %s." % (said, error)
    directory = os.path.dirname(error.filename)
    found = os.statvfs(directory)
    free = free_words(found.f_bavail * found.f_frsize)
    return "%s, as the disk with %s is full (%s are free): free some space there%s." % (said, directory, free, stays)


def _stays(place):
    current = place.current()
    return "there is no other" if current is None else "the one before it stays in use, %s" % (current or place.link)


def switch(place, texts):
    """Put the verified environment in use, and record its locks; return the directory that was in use before. Raise OSError.

    The link changes at once, when all that needs room is written. A directory that has its place is moved aside first, and comes back
    where that fails.
    """
    before, adopted = place.current(), place.is_adopted()
    own = place.link if adopted else place.new
    for file in texts:
        # A node that shares the directory with the one that has made it may not write there.
        if _text(os.path.join(own, file)) != texts[file]:
            replace(os.path.join(own, file), texts[file])
    if not adopted and before not in (None, place.directory):
        _keep(place)
    written = _write_locks(place, texts)
    try:
        if before != place.directory:
            _point(place, _aside(place) if before == "" else None)
    except EnvironmentError:
        for new in written.values():
            os.unlink(new)
        raise
    for path, new in written.items():
        os.rename(new, path)
    return before


def _write_locks(place, texts):
    """Write the locks that differ next to their places; return {place: where}."""
    written = {}
    try:
        for file, path in place.locks.items():
            if file in texts and _text(path) != texts[file]:
                if not os.path.isdir(os.path.dirname(path)):
                    make_directories(os.path.dirname(path))
                written[path] = write_beside(path, texts[file].encode("utf-8"))
    except EnvironmentError:
        for new in written.values():
            os.unlink(new)
        raise
    return written


def _aside(place):
    """Return where the directory goes that was in use: it is the environment that is asked for, or an older one."""
    if place.is_adopted():
        return place.new
    former = os.path.join(place.root, environments.former_directory(place.name))
    shutil.rmtree(former, ignore_errors=True)
    return former


def _point(place, aside):
    """Let the link lead to the new environment; between the two renames, where a directory has its place, there is none."""
    new = os.path.join(place.root, ".%s.link" % place.name)
    if os.path.lexists(new):
        os.unlink(new)
    os.symlink(place.directory, new)
    if aside:
        os.rename(place.link, aside)
    try:
        os.rename(new, place.link)
    except OSError:
        if aside:
            os.rename(aside, place.link)
        raise


def _keep(place):
    """Give the environment in use its locks where it has none, and note that it was in use until now."""
    for file, path in place.locks.items():
        text, own = _text(path), os.path.join(place.link, file)
        if os.path.isdir(place.link) and text is not None and not os.path.exists(own):
            replace(own, text)
    if os.path.exists(os.path.join(place.link, environments.LOCK)):
        os.utime(os.path.join(place.link, environments.LOCK), None)


def _older(place, keep):
    """Return the directories of this environment that are not to be kept: all but KEEP of those that were in use last."""
    tree = FileTree("/")
    kept = [one["directory"] for one in environments.read_kept(tree, place.root) if one["name"] == place.name]
    kept = [one for one in kept if one != place.current()][:keep]
    return [
        one
        for one in tree.names(place.root)
        if environments.name_of(conda_build.prefix_of(one) or one) == place.name
        and one not in kept
        and one != place.current()
    ]


def prune(place, keep, proc=PROC):
    """Remove all older environments but KEEP; return {removed, used}, of which the latter stay. Raise OSError."""
    directories = _older(place, keep)
    used = [one for one in directories if _is_used(os.path.join(place.root, one), proc)]
    for one in directories:
        if one not in used:
            path = os.path.join(place.root, one)
            if not os.path.islink(path):
                _unmark(path)  # what is removed in part is not an environment any more
            conda_build.remove(path)
    return {"removed": [one for one in directories if one not in used], "used": used}


def forget(place):
    """Have an environment that does not work count as what an interrupted run left, unless it is in use: the next run makes it again."""
    if place.current() != place.directory:
        _unmark(place.new)


def _unmark(path):
    for file in (environments.LOCK, environments.CONDA_LOCK):
        if os.path.exists(os.path.join(path, file)):
            os.unlink(os.path.join(path, file))


def _is_used(path, proc):
    """Return True if a process runs a program of the directory, has a library of it mapped, or has it as its working directory."""
    path = os.path.realpath(path)
    for process in os.listdir(proc):
        if not process.isdigit():
            continue
        base = os.path.join(proc, process)
        links = [_link(os.path.join(base, name)) for name in ("cwd", "exe")]
        if any((link + "/").startswith(path + "/") for link in links) or path + "/" in (_text(base + "/maps") or ""):
            return True
    return False


def _link(path):
    try:
        return os.readlink(path)
    except EnvironmentError:  # it has ended, or has none
        return ""


def _text(path):
    return FileTree("/").content(path)
