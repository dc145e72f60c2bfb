# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather NCCL's configuration on a node, as ``ansible_facts.gpu_nccl``: /etc/nccl.conf, and other places that set its variables."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import pwd
import re
import socket
import struct

from ..machine.regular import IrregularError, read_regular
from . import tuning_record

CONF = "/etc/nccl.conf"
USER_CONF = ".nccl.conf"
RECORD = "nccl_conf"
# Where environments are set for all users and services: a directory with what its files' names end with, or one file.
PLACES = (
    ("/etc/environment", None),
    ("/etc/environment.d", ".conf"),
    ("/etc/profile", None),
    ("/etc/profile.d", ""),
    ("/etc/security", ".conf"),
    ("/etc/default", ""),
    ("/etc/sysconfig", ""),
    ("/etc/systemd", ".conf"),
    ("/etc/systemd/system.conf.d", ".conf"),
    ("/etc/systemd/user.conf.d", ".conf"),
    ("/etc/systemd/system", ".service"),
)
DROP_INS = "/etc/systemd/system"
# Longer files are not settings, and no site sets more variables.
LONGEST, MOST = 65536, 100
# What is set: NAME=value, after export or in quotes, too; "setenv NAME value" of csh; "NAME DEFAULT=value" of pam_env.
ASSIGNMENT = re.compile(
    r"(?<![A-Za-z0-9_${])(NCCL_[A-Z0-9_]+)(?:=|\s+(?:DEFAULT|OVERRIDE)=)|\bsetenv\s+(NCCL_[A-Z0-9_]+)\s"
)
ZERO = re.compile(r"\s*[\"']?0(?=[\"'\s;]|$)")


def read_nccl(tree, user=None):
    """Return the whole fact. user: whose own file counts."""
    record = tuning_record.load(tree, tuning_record.path_of(RECORD))
    found = variables_of(short_text(tree, CONF))
    return {
        "recorded": record is not None,
        "exists": tree.exists(CONF),
        "original": record["files"].get(CONF) is not None if record else tree.exists(CONF),
        "variables": found,
        "foreign": read_foreign(tree, _home(tree, user)),
        "interfaces": read_interfaces(tree),
    }


def short_text(tree, path):
    """Return the text of a short regular file; None of anything else: a pipe would never end."""
    place = tree.resolve(path)
    try:
        text = read_regular(tree.path(place), LONGEST, follow=True).decode("utf-8", "replace")
    except (EnvironmentError, IrregularError):
        return None
    tree.content(place)  # what records a machine notes the file
    return text


def variables_of(text):
    """Return {name: value} as NCCL reads its file (src/misc/param.cc): nothing is trimmed, and the first line counts."""
    found = {}
    for line in (text or "").split("\n"):
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#") and name.startswith("NCCL_"):
            found.setdefault(name, value)
    return found


def _home(tree, user):
    """Return the user's home directory; what only a directory service knows is asked of this machine, not of a recording."""
    for line in (tree.text("/etc/passwd") or "").splitlines():
        columns = line.split(":")
        if len(columns) > 5 and columns[0] == user:
            return columns[5]
    if not user or tree.root != "/":
        return None
    try:
        return pwd.getpwnam(user).pw_dir
    except KeyError:
        return None


def read_foreign(tree, home=None):
    """Return [{file, line, name, zero}] of every place that sets one of NCCL's variables; never what else a file has.

    zero: whether it is set to 0, as a switch that switches nothing.
    """
    paths = ["%s/%s" % (home, USER_CONF)] if home else []
    for place, ending in PLACES:
        paths += [place] if ending is None else _files(tree, place, ending)
    for directory in tree.names(DROP_INS):
        if directory.endswith(".d"):
            paths += _files(tree, "%s/%s" % (DROP_INS, directory), ".conf")
    found = []
    for path in paths:
        for number, line in enumerate((short_text(tree, path) or "").splitlines(), 1):
            if not line.lstrip().startswith("#"):
                zero = {one[1] or one[2]: bool(ZERO.match(line, one.end())) for one in ASSIGNMENT.finditer(line)}
                found += [{"file": path, "line": number, "name": name, "zero": zero[name]} for name in sorted(zero)]
    return found[:MOST]


def _files(tree, directory, ending):
    return ["%s/%s" % (directory, name) for name in tree.names(directory) if name.endswith(ending)]


def read_interfaces(tree):
    """Return [{name, subnet}] of network interfaces that are up and have a subnet of IPv4, as 10.0.0.0/24."""
    found = set()
    for line in (tree.text("/proc/net/route") or "").splitlines()[1:]:
        columns = line.split()
        if len(columns) > 7 and columns[2] == "00000000" and columns[7] not in ("00000000", "FFFFFFFF"):
            if tree.text("/sys/class/net/%s/operstate" % columns[0]) in ("up", "unknown"):
                found.add((columns[0], _subnet(columns[1], columns[7])))
    return [{"name": name, "subnet": subnet} for name, subnet in sorted(found)]


def _subnet(address, mask):
    """Return a subnet of /proc/net/route, which has the address in the order of this machine's bytes."""
    text = socket.inet_ntoa(struct.pack("=I", int(address, 16)))
    return "%s/%d" % (text, bin(int(mask, 16)).count("1"))
