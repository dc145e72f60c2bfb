# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State of systemd services, and what a node says about reboots and containers."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import calendar
import json
import os
import re
import time

FABRIC_MANAGER = "nvidia-fabricmanager"
IMEX = "nvidia-imex"
CDI_REFRESH_PATH, CDI_REFRESH_SERVICE = "nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service"
TIME_SERVICES = ("chrony", "chronyd")  # Debian's name and Red Hat's; either may be an alias of the other
# A static unit has nothing that could be enabled: it starts when something else asks for it.
ENABLED = ("enabled", "enabled-runtime", "indirect", "generated", "alias")
SHOW = ["systemctl", "show", "--property=LoadState,ActiveState,UnitFileState,NeedDaemonReload"]


def parse_show(text, services):
    """Return {service: {enabled, active, outdated}} from ``systemctl show`` of these services, in their order.

    No unit is False. outdated: its unit's files have changed since systemd read them.
    """
    blocks = [dict(re.findall(r"(?m)^(\w+)=(.*)$", block)) for block in re.split(r"\n\s*\n", text.strip())]
    if len(blocks) != len(services) or not services:
        return unknown_services(services)
    states = {}
    for service, block in zip(services, blocks):
        states[service] = {
            "enabled": block.get("UnitFileState") in ENABLED,
            "active": block.get("ActiveState") in ("active", "reloading", "activating"),
            "outdated": block.get("NeedDaemonReload") == "yes",
        }
    return states


def unknown_services(services):
    """Return the states of services where systemd cannot be asked."""
    return {service: {"enabled": None, "active": None, "outdated": None} for service in services}


def is_container(tree):
    """Return True if this is a container, as systemd-detect-virt --container does, from the files it looks at."""
    marks = ("/run/systemd/container", "/run/.containerenv", "/.dockerenv")
    environment = "\0" + (tree.text("/proc/1/environ") or "")
    vz = tree.exists("/proc/vz") and not tree.exists("/proc/bc")
    return vz or "\0container=" in environment or any(tree.exists(mark) for mark in marks)


def is_fips(tree):
    """Return True if the kernel, or the system-wide crypto policy, accepts only algorithms that FIPS 140 approves."""
    policy = (tree.text("/etc/crypto-policies/state/current") or "").split(":")[0]
    return tree.text("/proc/sys/crypto/fips_enabled") == "1" or policy == "FIPS"


def boot_time(tree):
    """Return when the node's (or container's) first process started, in seconds since the epoch; None if unreadable."""
    booted = re.search(r"(?m)^btime (\d+)$", tree.text("/proc/stat") or "")
    stat = (tree.text("/proc/1/stat") or "").rpartition(")")[2].split()
    if not booted or len(stat) < 20:
        return None
    return int(booted.group(1)) + int(stat[19]) / float(os.sysconf("SC_CLK_TCK"))


def read_reboot_pending(tree):
    """Return {reason, since, by_role, code} when a reboot is asked for and has not happened since, else None.

    ``by_role``: recorded by a role of this collection; else the distribution asks for it.
    """
    ours = tree.text("/var/lib/allreduce/reboot-pending")
    if ours is not None:
        mark = _json_mapping(ours)
        since, booted = _seconds(mark.get("since")), boot_time(tree)
        if since is None or booted is None or since >= booted:
            return {"reason": mark.get("reason"), "since": mark.get("since"), "by_role": True, "code": mark.get("code")}
    if tree.exists("/run/reboot-required"):
        packages = (tree.text("/run/reboot-required.pkgs") or "").split()
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(os.path.getmtime(tree.path("/run/reboot-required"))))
        reason = ", ".join(sorted(set(packages))) or "the distribution asks for it"
        return {"reason": reason, "since": since, "by_role": False, "code": None}
    return None


def _json_mapping(text):
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"reason": text, "since": None}


def _seconds(value):
    """Seconds since the epoch of a number or of an ISO 8601 time in UTC; None of anything else."""
    if isinstance(value, (int, float)):
        return value
    try:
        return calendar.timegm(time.strptime(str(value)[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None


def disk_free_mib(tree, paths):
    """Return the MiB free for unprivileged writers below each path, or below its nearest existing parent.

    Paths on one file system have one number, whatever is written meanwhile.
    """
    free, measured = {}, {}
    for path in paths:
        place = path
        while place != "/" and not os.path.exists(tree.path(place)):
            place = os.path.dirname(place)
        device = os.stat(tree.path(place)).st_dev
        if device not in measured:
            stat = os.statvfs(tree.path(place))
            measured[device] = stat.f_bavail * stat.f_frsize // (1024 * 1024)
        free[path] = measured[device]
    return free
