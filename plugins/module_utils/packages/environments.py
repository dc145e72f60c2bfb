# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python environments below /opt/allreduce/envs and what is installed in them, read from their metadata directories."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib
import os
import posixpath
import re

from ..host.installed_files import changed_file
from . import conda_lock, conda_prefix

ENVIRONMENTS = "/opt/allreduce/envs"
LOCKS = "/etc/allreduce/locks"
# The locks of an environment that was verified, in its own directory.
LOCK, CONDA_LOCK = "allreduce-lock.txt", "allreduce-conda-lock.txt"
# Wheels that were compiled, a directory for each build, by its digest.
BUILDS = "/opt/allreduce/cache/horovod"
# Where role python_env installs it.
UV = "/opt/allreduce/uv/bin/uv"


def normalise(name):
    """Return a distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_environments(tree, directory=ENVIRONMENTS):
    """Return {name: {python, home, target, packages: {name: version}, changed_files: {name: path}, lock, horovod, conda}}.

    target: where its link leads, None where it is a directory itself.
    An environment whose interpreter is gone is left out. changed_files: of each package that is not as it was installed, the first
    such file, below the environment. horovod: the digest of the build that was installed, None without one. conda: see read_conda.
    """
    environments = {}
    for name in tree.names(directory):
        if name.startswith("."):
            continue  # on its way to its place
        base = "%s/%s" % (directory, name)
        if tree.exists(tree.resolve(base + "/bin/python")):
            packages, changed = read_packages(tree, base)
            environments[name] = {
                "python": _python_version(tree, base),
                "home": _home(tree, base),
                "target": tree.link(base),
                "packages": packages,
                "changed_files": changed,
                "lock": parse_lock(tree.content("%s/%s.txt" % (LOCKS, name))),
                "horovod": _installed_build(tree, base),
                "conda": read_conda(tree, base, name),
            }
    return environments


def read_packages(tree, base):
    """Return ({name: version}, {name: path of a file that is not as it was installed}) of what is in the environment BASE."""
    return {package: version for package, version, _place in _packages(tree, base)}, _changed_files(tree, base)


def former_directory(name):
    """Return where an environment goes that was a directory itself, and is replaced."""
    return ".%s-former" % name


def name_of(directory):
    """Return the name of the environment that a directory is made for; None for any other file."""
    found = re.match(r"\.(.+)-(?:[0-9a-f]{12}|former)$", directory)
    return found.group(1) if found else None


def read_kept(tree, directory=ENVIRONMENTS):
    """Return [{directory, name, request}] of the environments that were verified, those that were in use last first.

    request: the digest of what was asked for. One whose interpreter is gone is left out.
    """
    kept = []
    for one in tree.names(directory):
        base = "%s/%s" % (directory, one)
        path = "%s/%s" % (base, LOCK)
        lock = parse_lock(tree.text(path)) if name_of(one) else None
        if lock and tree.exists(tree.resolve(base + "/bin/python")):
            found = {"directory": one, "name": name_of(one), "request": lock["request"]}
            kept.append((os.stat(tree.path(path)).st_mtime, found))
    return [found for dummy, found in sorted(kept, key=lambda one: (-one[0], one[1]["directory"]))]


def read_conda(tree, base, name):
    """Return conda's part of an environment, None where it made none: {complete, packages, locked, changed_files}.

    packages, locked: {name: "version build"} of what is installed, and of the explicit lock; locked is None without one.
    """
    found = conda_prefix.read_prefix(tree, base)
    if found["state"] not in (conda_prefix.COMPLETE, conda_prefix.INTERRUPTED):
        return None
    text = tree.text("%s/%s.conda.txt" % (LOCKS, name))
    return {
        "complete": found["state"] == conda_prefix.COMPLETE,
        "packages": _releases(found["packages"]),
        "locked": _releases(conda_lock.parse(text)[0]) if text else None,
        "changed_files": found["changed_files"],
    }


def _releases(packages):
    return {name: "%(version)s %(build)s" % one for name, one in packages.items() if one}


def read_versions(tree, base):
    """Return {name: version} of the packages in the environment BASE, and of its Python; empty where there is none."""
    versions = {package: version for package, version, _place in _packages(tree, base)}
    python = _python_version(tree, base)
    return dict(versions, python=python) if python else versions


def read_builds(tree, directory=BUILDS):
    """Return {digest: {file, sha256}} of the wheels that role horovod keeps on the node."""
    builds = {}
    for digest in tree.names(directory):
        found = re.match(
            r"([0-9a-f]{64})  ([A-Za-z0-9._+-]+\.whl)\s*$", tree.text("%s/%s/wheel.sha256" % (directory, digest)) or ""
        )
        if found and tree.exists("%s/%s/%s" % (directory, digest, found.group(2))):
            builds[digest] = {"file": found.group(2), "sha256": found.group(1)}
    return builds


def read_uv(tree, run):
    """Return the version of uv; None without it, and where its installation was cut off: then it does not answer."""
    answer = (run([UV, "--version"]) if tree.exists(UV) else None) or ""
    found = re.match(r"uv (\S+)", answer)
    return found.group(1) if found else None


def parse_lock(text):
    """Return {request, packages: {name: version}, digest} of a lock that role frameworks wrote; None for no text.

    A version is None where a URL is pinned. ``request`` is the digest of what was asked for, None where it is missing; ``digest`` is
    that of the text, which has hashes, too: the first sixteen hexadecimal digits of its SHA-256.
    """
    if not text:
        return None
    request = re.search(r"(?m)^# request: ([0-9a-f]{16})$", text)
    pins = re.findall(r"(?m)^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?\s*(?:==\s*([^\s;\\]+)|@\s)", text)
    packages = {normalise(name): version or None for name, version in pins}
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return {"request": request.group(1) if request else None, "packages": packages, "digest": digest}


def _python_version(tree, base):
    found = re.search(r"(?m)^version(?:_info)?\s*=\s*(\d+\.\d+(?:\.\d+)?)", tree.text(base + "/pyvenv.cfg") or "")
    if found:
        return found.group(1)
    for name in tree.names(base + "/conda-meta"):
        found = re.match(r"python-(\d+\.\d+\.\d+)-.*\.json$", name)
        if found:
            return found.group(1)
    return None


def _home(tree, base):
    """Directory of the interpreter that a virtual environment was made with; None where conda made it."""
    found = re.search(r"(?m)^home\s*=\s*(/.*?)\s*$", tree.text(base + "/pyvenv.cfg") or "")
    return found.group(1) if found else None


def _installed_build(tree, base):
    """The installer writes down where a wheel came from, in a directory that goes with the package (PEP 610)."""
    for site in _sites(tree, base):
        for entry in tree.names(site):
            if re.match(r"horovod-[^-]+\.dist-info$", entry):
                origin = tree.text("%s/%s/direct_url.json" % (site, entry)) or ""
                found = re.search(re.escape(BUILDS) + r"/([0-9a-f]{16})/", origin)
                return found.group(1) if found else None
    return None


def _sites(tree, base):
    return [
        "%s/lib/%s/site-packages" % (base, lib) for lib in tree.names(base + "/lib") if re.match(r"python3\.\d+$", lib)
    ]


def _packages(tree, base):
    """Yield (name, version, (site, entry)) of completely installed ones: the RECORD is the last file an installer writes."""
    for site in _sites(tree, base):
        for entry in tree.names(site):
            found = re.match(r"(.+?)-([^-]+)\.dist-info$", entry)
            if found and tree.exists("%s/%s/RECORD" % (site, entry)):
                yield normalise(found.group(1)), found.group(2), (site, entry)


def _changed_files(tree, base):
    changed = {}
    for name, _version, (site, entry) in _packages(tree, base):
        if tree.text("%s/%s/INSTALLER" % (site, entry)) == "conda":  # which has records of its own
            continue
        path = changed_file(tree, site, entry)
        if path:
            changed[name] = posixpath.normpath("%s/%s" % (site[len(base) + 1 :], path))
    return changed
