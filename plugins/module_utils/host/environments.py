# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python environments below /opt/allreduce/envs and what is installed in them, read from their metadata directories."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

ENVIRONMENTS = "/opt/allreduce/envs"
LOCKS = "/etc/allreduce/locks"


def normalise(name):
    """Return a distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_environments(tree, directory=ENVIRONMENTS):
    """Return {name: {python, home, packages: {name: version}, lock}}.

    An environment whose interpreter is gone is left out.
    """
    environments = {}
    for name in tree.names(directory):
        base = "%s/%s" % (directory, name)
        if tree.exists(tree.resolve(base + "/bin/python")):
            environments[name] = {
                "python": _python_version(tree, base),
                "home": _home(tree, base),
                "packages": _packages(tree, base),
                "lock": parse_lock(tree.text("%s/%s.txt" % (LOCKS, name))),
            }
    return environments


def parse_lock(text):
    """Return {request, packages: {name: version}} of a lock that role frameworks wrote; None for no text.

    A version is None where a URL is pinned. ``request`` is the digest of what was asked for, None where it is missing.
    """
    if not text:
        return None
    request = re.search(r"(?m)^# request: ([0-9a-f]{16})$", text)
    pins = re.findall(r"(?m)^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?\s*(?:==\s*([^\s;\\]+)|@\s)", text)
    packages = {normalise(name): version or None for name, version in pins}
    return {"request": request.group(1) if request else None, "packages": packages}


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


def _packages(tree, base):
    """Only completely installed ones: the RECORD is the last file an installer writes."""
    packages = {}
    for lib in tree.names(base + "/lib"):
        if re.match(r"python3\.\d+$", lib):
            site = "%s/lib/%s/site-packages" % (base, lib)
            for entry in tree.names(site):
                found = re.match(r"(.+?)-([^-]+)\.dist-info$", entry)
                if found and tree.exists("%s/%s/RECORD" % (site, entry)):
                    packages[normalise(found.group(1))] = found.group(2)
    return packages
