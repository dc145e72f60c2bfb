# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the machine around the GPUs: memory and processors, their errors, and what overrides NCCL's settings."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .findings import fault, finding, judged
from .host_log import find_host_events
from .kernel_log import is_whole

# Which switch a way of NCCL's off (NCCL, docs/userguide, env.rst): found for all users, they are left over from some test.
SWITCHES = ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE")
CONF = "/etc/nccl.conf"


def steps(host, log, limits):
    """Return [(checks, function, its arguments)]; ``host``: see host_reading, empty where nothing was read."""
    return [
        (("memory_size",), size, ("memory_size", host, "memory_mib", limits["memory_mib"], "MiB")),
        (("cpu_count",), size, ("cpu_count", host, "cpus", limits["cpu_count"], "processors")),
        (("memory_errors",), memory_errors, (host, limits)),
        (("oom_kills", "machine_checks"), log_events, (log, host, limits)),
        (("nccl_settings",), nccl_settings, (host,)),
        (("kernel_clock",), kernel_clock, (host, limits)),
        (("disks",), disks, (host,)),
        (("nvme_health",), nvme_health, (host, limits)),
        (("network_mounts",), network_mounts, (host,)),
    ]


def size(check, host, key, expected, unit):
    """Judge memory or processors, where it is declared how much there must be."""
    if expected is None:
        return []
    found, wanted, there = [], "at least %d %s" % (expected, unit), host.get(key)
    if there is None:
        cause, action = "the kernel does not say how many %s there are" % unit, "run on the machine itself"
        found.append(finding(check, wanted, None, "unknown", cause, action, None, "monitor"))
    elif there < expected:
        found.append(fault(check, "fewer", wanted, "%d %s" % (there, unit)))
    return [judged(check, wanted, "%s %s" % (there, unit), found)]


def memory_errors(host, limits):
    """Judge what the memory controllers have counted; a kernel without a driver for them counts nothing."""
    check, most, found = "memory_errors", limits["max_corrected_memory_errors"], []
    for one in host.get("memory_errors") or []:
        name = ", ".join([one["name"]] + one["dimms"])
        if one["uncorrected"] is None:
            cause, action = "the counter of %s cannot be read" % name, "look below /sys/devices/system/edac"
            found.append(finding(check, "none uncorrected", None, "unknown", cause, action, None, "monitor"))
        elif one["uncorrected"]:
            found.append(fault(check, "uncorrected", "none uncorrected", "%d on %s" % (one["uncorrected"], name)))
        if most is not None and (one["corrected"] or 0) > most:
            text = "%d corrected on %s" % (one["corrected"], one["name"])
            found.append(fault(check, "corrected", "at most %d corrected" % most, text))
    return [judged(check, "none uncorrected", "none uncorrected", found)] if host.get("memory_errors") else []


def log_events(log, host, limits):
    """Judge what the log says of memory that was short or has failed; check xid says where it cannot be read."""
    if log is None:
        return []
    events = find_host_events(log)
    killed = [one for one in events if one["kind"] == "oom" and is_recent(one, host, 60 * limits["oom_minutes"])]
    names = ", ".join(sorted({one["what"] for one in killed}))
    found = [fault("oom_kills", "killed", "none", "%d killed: %s" % (len(killed), names))] if killed else []
    broken = []
    for kind, words in (("memory", "%d uncorrected memory errors"), ("hardware", "%d hardware errors of firmware")):
        count = len([one for one in events if one["kind"] == kind])
        if count:
            broken.append(fault("machine_checks", kind, "none", words % count))
    # Check xid says that this is unknown.
    measured = "none" if is_whole(log) else "none in what is left of the log"
    return [judged("oom_kills", "none", measured, found), judged("machine_checks", "none", measured, broken)]


def is_recent(event, host, seconds):
    """Return True if an event is not older; one whose time is not known counts, one of a time to come is another machine's."""
    if event["seconds"] is None or host.get("uptime_seconds") is None:
        return seconds > 0
    return -60 < host["uptime_seconds"] - event["seconds"] <= seconds if seconds else False


def nccl_settings(host):
    """Judge what is set for all users: what goes before /etc/nccl.conf, and what switches a way of NCCL's off."""
    check, nccl, found = "nccl_settings", host.get("nccl"), []
    if nccl is None:
        return []
    for one in nccl["foreign"]:
        switches = one["name"] in SWITCHES and not one["zero"]
        code = "override" if one["name"] in nccl["variables"] else "switch" if switches else None
        if code:
            text = "%s in %s, line %d" % (one["name"], one["file"], one["line"])
            found.append(fault(check, code, "set nowhere else" if code == "override" else "not set", text))
    for name in SWITCHES:
        if nccl["variables"].get(name, "0") != "0":
            found.append(fault(check, "switch", "not set", "%s in %s" % (name, CONF)))
    return [judged(check, "nothing that overrides", "nothing that overrides", found)]


def kernel_clock(host, limits):
    """Judge by how much the clock is still to be corrected; that of a clock which nothing keeps in time is not known."""
    offset, most = (host.get("clock") or {}).get("offset_seconds"), limits["max_clock_offset_ms"]
    if offset is None:
        return []
    expected, text = "at most %d ms" % most, "%.1f ms" % (1000 * offset)
    found = [fault("kernel_clock", "far", expected, text)] if abs(1000 * offset) > most else []
    return [judged("kernel_clock", expected, text, found)]


def disks(host):
    """Judge what the kernel says of disks, arrays and file systems; those without a word are well."""
    if not host.get("disks"):
        return []
    # A drive that was asked itself says by which limit it is too hot.
    asked = {one["name"] for one in host.get("nvme") or () if one["page"]}
    bad = [one for one in host["disks"] if one["fault"] and not (one["fault"] == "alarm" and one["name"] in asked)]
    found = [fault("disks", one["fault"], "well", one["what"]) for one in bad]
    return [judged("disks", "well", "%d well" % len(host["disks"]), found)]


def nvme_health(host, limits):
    """Judge what NVMe drives say of themselves; imported here, since a node without one need not compile it."""
    if not host.get("nvme"):
        return []
    from .nvme import nvme_health as judge_drives

    return judge_drives(host, limits)


def network_mounts(host):
    """Judge whether the network file systems answer, for which programs wait as long as it takes."""
    if not host.get("network_mounts"):
        return []
    bad = [one for one in host["network_mounts"] if one["fault"]]
    found = [fault("network_mounts", "silent", "well", "%(point)s: %(words)s" % one) for one in bad]
    return [judged("network_mounts", "well", "%d well" % len(host["network_mounts"]), found)]
