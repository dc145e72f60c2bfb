# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of processes, as the kernel shows them for each; a file that was to set them proves nothing."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from . import sysctl

NAMES = {"memlock": "Max locked memory", "nofile": "Max open files", "nproc": "Max processes"}
CAP_SYS_RESOURCE = 1 << 24
LIMITS = "/proc/self/limits"


def parse(text):
    """Return {name: {soft, hard}} of /proc/PID/limits; numbers, or ``unlimited``."""
    found = {}
    for name, title in NAMES.items():
        line = re.search(r"(?m)^%s\s+(\S+)\s+(\S+)" % title, text or "")
        if line:
            found[name] = {"soft": _number(line.group(1)), "hard": _number(line.group(2))}
    return found


def _number(text):
    return int(text) if text.isdigit() else text


def rank(value):
    # type: (int) -> float
    """Return the sort key of a limit: no number is above unlimited."""
    return float("inf") if value == "unlimited" else value


def read_ceiling(tree):
    """Return {name: value}: the values above which a hard limit cannot be raised.

    Raising one takes CAP_SYS_RESOURCE in the first user namespace (kernel/sys.c, do_prlimit): without it, what the first
    process has is all there is. No process has more open files than fs.nr_open.
    """
    first = {name: limit["hard"] for name, limit in parse(tree.text("/proc/1/limits")).items()}
    bounds = re.search(r"(?m)^CapBnd:\s*([0-9a-f]+)", tree.text("/proc/1/status") or "")
    mapped = (tree.text("/proc/1/uid_map") or "").split()
    may_raise = bool(bounds) and bool(int(bounds.group(1), 16) & CAP_SYS_RESOURCE) and mapped[:2] == ["0", "0"]
    if not may_raise:
        return first
    files = tree.number(sysctl.path_of("fs.nr_open"))
    return {"memlock": "unlimited", "nproc": "unlimited", "nofile": files or first.get("nofile", "unlimited")}


def unit_of(cgroup):
    """Return the service that a process belongs to, of /proc/PID/cgroup; None for init, sessions, and what is in a container."""
    for line in (cgroup or "").splitlines():
        path = line.split(":", 2)[-1]
        found = re.match(r"(?:/[^/]+\.slice)*/([^/]+)\.service(/.*)?$", path)
        if found and not (found.group(2) or "").startswith("/init.scope"):
            return found.group(1)
    return None


def read_services(tree, services):
    """Return {service: {name: {soft, hard, pid}}} of the running ones and of every user's manager: the process that has least."""
    found = {}
    for pid in sorted((name for name in tree.names("/proc") if name.isdigit()), key=int):
        unit = unit_of(tree.text("/proc/%s/cgroup" % pid))
        if unit is None or (unit not in services and not re.match(r"user@\d+$", unit)):
            continue
        limits = parse(tree.text("/proc/%s/limits" % pid))
        for name, limit in limits.items():
            known = found.setdefault(unit, {}).get(name)
            if known is None or rank(limit["soft"]) < rank(known["soft"]):
                found[unit][name] = dict(limit, pid=int(pid))
    return found


def read_fresh(run, user):
    """Start a login of the user and a service, and return their limits as {login, unit}; empty where one does not start."""
    login = run(["runuser", "-l", user, "-c", "cat " + LIMITS])
    unit = run(["systemd-run", "--quiet", "--wait", "--pipe", "--collect", "cat", LIMITS])
    return {"login": parse(login), "unit": parse(unit)}
