# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make, replace and remove an environment of conda; what was there before comes back where that fails."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, unquote

from ..host.download import fetch, sha256
from ..machine.files import make_directories
from ..machine.problems import problem
from . import conda_lock, conda_plan, conda_prefix, conda_program

DOWNLOADS = 4  # at a time, as conda does
MOST_PROBLEMS = 3


class Place:
    """An environment, where its former state waits meanwhile, and where packages are kept until it is done.

    All lie in one directory, so that packages are linked and not copied. The packages are the program's own and not shared: a file
    that is damaged in an environment is damaged in whatever it is linked with.
    """

    def __init__(self, prefix):
        directory, name = os.path.split(prefix)
        self.prefix, self.directory = prefix, directory
        self.former = os.path.join(directory, ".%s.former" % name)
        self.cache = os.path.join(directory, ".%s.packages" % name)


def replace(tree, place, program, packages, run, proxies):
    """Install exactly the packages of a lock; return problems.

    run: function of (command, directory of the program's own packages) that returns (exit code, output). What is fetched stays
    where that breaks off, and the next run goes on from there.
    """
    for directory in (place.directory, place.cache):
        if not os.path.isdir(directory):
            make_directories(directory)
    local, problems = _fetch(place, packages, proxies)
    if problems:
        return problems
    _put_aside(tree, place)
    try:
        problems = _create(place, program, local, run)
        problems = problems or _verify(conda_prefix.read_prefix(tree, place.prefix), packages)
    except BaseException:
        _bring_back(place)
        raise
    if problems:
        _bring_back(place)
        return problems
    clear(place)
    return []


def _put_aside(tree, place):
    """An environment that is complete is what to go back to; else that of an earlier run which was cut off."""
    state = conda_prefix.read_prefix(tree, place.prefix)["state"]
    if state == conda_prefix.COMPLETE:
        remove(place.former)
    if os.path.lexists(place.former):
        remove(place.prefix)
    elif os.path.lexists(place.prefix):
        os.rename(place.prefix, place.former)


def _bring_back(place):
    remove(place.prefix)
    if os.path.lexists(place.former):
        os.rename(place.former, place.prefix)


def _fetch(place, packages, proxies):
    """Return ({address below the cache: SHA-256}, problems).

    The checksums are compared here, before anything of a package is used: conda and rattler take a package from a file:// address
    whatever checksum the lock has (seen with conda 26.7.1 and py-rattler 0.25.0 and 0.28.0).
    """

    def one(package):
        path = os.path.join(place.cache, "channel", package["subdir"], unquote(package["url"].rpartition("/")[2]))
        return path, _fetch_one(package, path, proxies)

    for subdir in {package["subdir"] for package in packages.values()} | {"noarch"}:
        directory = os.path.join(place.cache, "channel", subdir)
        if not os.path.isdir(directory):
            make_directories(directory)
    with ThreadPoolExecutor(DOWNLOADS) as pool:
        found = list(pool.map(one, packages.values()))
    problems = [why for dummy_path, why in found if why]
    paths = [path for path, dummy_why in found]
    local = {"file://" + quote(path, "/!+~@,="): one["sha256"] for path, one in zip(paths, packages.values())}
    return local, problems[:MOST_PROBLEMS]


def _fetch_one(package, path, proxies):
    if sha256(path) == package["sha256"]:
        return None
    part = path + ".part"
    why = fetch(package["url"], part, proxies)
    if why:
        return problem("conda_not_fetched", package["url"], reason=why["detail"])
    found = sha256(part)
    if found != package["sha256"]:
        os.unlink(part)
        return problem("conda_checksum", package["url"], found=found, expected=package["sha256"])
    os.rename(part, path)
    return None


def _create(place, program, local, run):
    file = os.path.join(place.cache, "lock.txt")
    with open(file, "w") as stream:
        stream.write(conda_lock.render(local))
    code, output = run(conda_program.creation(program, place.prefix, file), os.path.join(place.cache, "own"))
    return [] if code == 0 else [conda_program.failure(program, code, output)]


def _verify(found, packages):
    """Compare what the program recorded with what it was to install."""
    different = conda_plan.differences(found["packages"], packages)
    if different:
        return [
            problem(
                "conda_not_as_locked", different[0]["name"], found=different[0]["found"], locked=different[0]["locked"]
            )
        ]
    if found["changed_files"]:
        name, path = sorted(found["changed_files"].items())[0]
        return [problem("conda_damaged", name, path=path)]
    if found["state"] != conda_prefix.COMPLETE:
        return [problem("conda_unfinished", None)]
    return []


def take_away(place):
    """Remove an environment and what an interrupted run left; half of it is never seen."""
    remove(place.former)
    if os.path.lexists(place.prefix):
        os.rename(place.prefix, place.former)
    clear(place)


def clear(place):
    """Remove what a run left that was killed: of an environment that is as it should be, nothing of it is needed any more."""
    for path in (place.former, place.cache):
        remove(path)


def prefix_of(name):
    """Return the name of the environment next to which a directory of this name was left; None for any other."""
    found = re.match(r"\.(.+)\.(?:former|packages)$", name)
    return found.group(1) if found else None


def remove(path):
    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)
    elif os.path.lexists(path):
        shutil.rmtree(path)
