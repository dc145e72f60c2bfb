# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Explicit locks of conda: the address and the SHA-256 of every package, after a line ``@EXPLICIT``.

The format is that of ``conda list --explicit --sha256``, ``micromamba env export --explicit`` and rattler
(https://conda.org/learn/ceps/cep-0023/); programs before those of program.py know no SHA-256 in it.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re
from urllib.parse import unquote, urlsplit

from ..machine.problems import problem

MARK = "@EXPLICIT"
ENTRY = re.compile(
    r"(?P<url>\S+/(?P<subdir>[^/#\s]+)/(?P<name>[^/#\s]+)-(?P<version>[^-/#\s]+)-(?P<build>[^-/#\s]+)(?:\.conda|\.tar\.bz2))"
    r"(?:#(?:sha256:)?(?P<sha256>[0-9a-f]{64}))?\Z"
)
# As a name of a file, which %2F in an address would lead elsewhere: on the node that fetches it, and on the server.
PLAIN = re.compile(r"(?!\.+\Z)[!-.0-~]+\Z")
# Anaconda's own channels, which have terms of their own: the names that conda knows (conda, base/constants.py), and where they are served.
DEFAULTS = ("defaults", "anaconda", "main", "free", "r", "pro", "msys2")
DEFAULT_HOSTS = ("repo.anaconda.com", "repo.continuum.io")
CHANNEL_HOSTS = ("conda.anaconda.org", "anaconda.org")


def parse(text):
    """Return ({name: {url, subdir, version, build, sha256}}, problems) of a lock."""
    lines = [line.strip() for line in (text or "").splitlines()]
    if MARK not in lines:
        return {}, [problem("conda_lock_no_mark")]
    packages, problems = {}, []
    for line in lines:
        if line and line != MARK and not line.startswith("#"):
            name, package, code = _entry(line)
            if code is None and name in packages:
                code = "conda_lock_twice"
            if code:
                problems.append(problem(code, line))
            packages[name] = package
    return packages, problems if packages else [problem("conda_lock_empty")]


def _entry(line):
    """Return (name, package, code of what is wrong with it)."""
    found = ENTRY.match(line)
    parts = {key: unquote(value) for key, value in found.groupdict().items() if value and key != "url"} if found else {}
    if not parts or not _split(line).scheme or not all(PLAIN.match(value) for value in parts.values()):
        return line, None, "conda_lock_no_package"
    name = parts.pop("name")
    return name, dict(parts, url=found.group("url")), None if "sha256" in parts else "conda_lock_no_checksum"


def _split(text):
    """Return the parts of an address; they are empty where it cannot be one."""
    try:
        return urlsplit(text)
    except ValueError:
        return urlsplit("")


def render(addresses, platform=None):
    """Return the lock of {address: SHA-256}, the same for the same packages."""
    lines = ["%s#sha256:%s" % one for one in sorted(addresses.items())]
    head = ["# platform: %s" % platform] if platform else []
    return "\n".join(head + [MARK] + lines) + "\n"


def channel(url):
    """Return the channel that a package's address is in."""
    return url.rpartition("/")[0].rpartition("/")[0]


def is_default(name):
    """Return True if a channel, by its name or address, is one of Anaconda's own."""
    address = _split(name)
    parts = [part for part in (address.path if address.scheme else name).split("/") if part]
    if address.scheme:
        if address.hostname in DEFAULT_HOSTS:
            return True
        if address.hostname not in CHANNEL_HOSTS:
            return False
        parts = parts[2:] if parts[:1] == ["t"] else parts  # /t/TOKEN/
    return bool(parts) and (parts[0] in DEFAULTS or parts[0] == "pkgs")


def default_channels(names):
    """Return the problem of those among the channels that are Anaconda's own, as a list."""
    found = sorted({name for name in names if is_default(name)})
    return [problem("conda_defaults", found[0])] if found else []


def foreign(packages, platform):
    """Return the problem of packages that are for another platform, as a list."""
    found = sorted({one["subdir"] for one in packages.values()} - {platform, "noarch"})
    return [problem("conda_platform", found[0], expected=platform)] if found else []
