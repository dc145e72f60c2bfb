# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan how a node gets its scratch, and how it loses it again, from what was read of it: nothing here touches a node.

A step is {kind, subject, before, after} with the command that makes it, where it is one. Steps whose ground is not there yet
(the file system of an array that is not running) are planned after the node was read again.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ..machine.problems import problem
from . import config_lines
from .tables import bare_uuid

# The largest stripe unit that a log of XFS can have; with a larger chunk mkfs.xfs takes 32 KiB (mkfs.xfs(8), -l su).
LOG_STRIPE_KIB = 256
LOG_STRIPE_DEFAULT_KIB = 32
TIMER = "fstrim.timer"
# For the boot, those with x- too, or what the kernel does anyway (mount(8)): a mounted file system does not show them.
UNSHOWN = ("nofail", "defaults", "auto", "async", "dev", "exec", "suid", "nouser", "_netdev")
# What it shows of others (kernel, fs/xfs/xfs_super.c, xfs_fs_show_options).
SHOWN = {"quota": "usrquota", "uquota": "usrquota", "gquota": "grpquota", "pquota": "prjquota"}
SIZE, FACTORS = re.compile(r"(allocsize|logbsize)=(\d+)([kKmMgG]?)\Z"), {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def step(kind, subject, before, after, command=None):
    """Return one step."""
    return {"kind": kind, "subject": subject, "before": before, "after": after, "command": command}


def plan_present(wanted, seen, record, choice):
    """Return (steps, problems) of the next round; none where the scratch is as wanted."""
    problems = wanted["problems"] + foreign(seen, record) + different(wanted, record)
    device = device_of(seen, record, choice["disks"])
    problems += unsuitable(seen, record, choice, device)
    if problems:
        return [], problems
    steps = file_steps(wanted, seen, record)
    steps += directory_steps(wanted, seen)
    steps += volume_steps(record, choice, device)
    if device or any(one["kind"] == "filesystem" for one in steps):
        steps += mount_steps(wanted, seen, device)
    if seen["trim"] is False and wanted["trim"]:
        steps.append(step("timer", TIMER, "disabled", "enabled", ["systemctl", "enable", "--now", TIMER]))
    return steps, []


def different(wanted, record):
    """Return the problems of the present scratch: properties that cannot change while it has data."""
    pairs = [("mount_point", record["mount_point"], wanted["mount_point"])]
    if record["array"]:
        pairs.append(("name", record["array"]["name"], wanted["name"]))
        pairs.append(("chunk_kib", record["array"]["chunk_kib"], wanted["chunk_kib"]))
    return [problem("fixed", key, found=was, expected=now) for key, was, now in pairs if was != now]


def foreign(seen, record):
    """Return the problems of what others have put where the scratch is to be."""
    point = record["mount_point"]
    found = [problem("fstab_taken", point, source=one) for one in config_lines.mounts_of_others(seen["fstab"], record)]
    if record["array"]:
        lines = config_lines.arrays_of_others(seen["mdadm_conf"]["text"], record)
        found += [problem("array_taken", "/dev/md/" + record["array"]["name"], line=one) for one in lines]
    directory = seen["directory"]
    if directory and not seen["mounted"] and (directory["names"] or not directory["is_directory"]):
        found.append(problem("mount_point_not_empty", point, names=directory["names"][:5]))
    return found


def device_of(seen, record, disks):
    """Return {device, number, signatures} of what the file system is on; None where the array is not running."""
    if not record["array"]:
        return disks[0]
    names = {one["name"] for one in disks}
    return next((one for one in seen["arrays"] if set(one["members"]) == names and one["running"]), None)


def unsuitable(seen, record, choice, device):
    """Return the problems that keep the device from being ours: half an array, another file system, another mount."""
    names = {one["name"] for one in choice["disks"]}
    found = []
    if record["array"] and device is None and not choice["blank"]:
        partial = [one["device"] for one in seen["arrays"] if set(one["members"]) & names]
        found += [problem("array_incomplete", one) for one in partial]
    if device and device["signatures"] is None:
        found.append(problem("not_examined", device["device"]))
    if device and not choice["blank"]:
        strange = [one["type"] for one in device["signatures"] or [] if not is_filesystem(one, record)]
        found += [problem("foreign_content", device["device"], type=one) for one in strange]
    mounted = seen["mounted"]
    if mounted and (device is None or mounted["number"] != device["number"]):
        found.append(problem("mount_point_taken", record["mount_point"], source=mounted["source"]))
    return found


def is_filesystem(signature, record):
    """Return True if a signature is that of our file system."""
    return signature["type"] == "xfs" and bare_uuid(signature["uuid"]) == bare_uuid(record["filesystem"])


def file_steps(wanted, seen, record):
    """Return the steps for fstab, mdadm.conf and the early user space that has a copy of the latter."""
    line = config_lines.fstab_entry(record, wanted["options"])
    steps = [_text_step(config_lines.FSTAB, seen["fstab"], line, line.split()[:2])]
    if record["array"]:
        conf, line = seen["mdadm_conf"], config_lines.array_entry(record)
        steps.append(_text_step(conf["path"], conf["text"], line, line.split()[:2]))
        changed = steps[-1] is not None
        if (changed or "initramfs" in record["pending"]) and seen["initramfs"]:
            steps.append(
                step("initramfs", "early user space", "without the array", "with the array", seen["initramfs"])
            )
    return [one for one in steps if one]


def _text_step(path, before, line, key):
    """Return the step that gives a file our line, or takes it (None); nothing where that is so already."""
    if line is not None and line in (before or "").splitlines():
        return None
    after = config_lines.with_line(before, line, key)
    return None if after == (before or "") else step("file", path, before, after)


def directory_steps(wanted, seen):
    """Return the step that makes the mount point; without the file system on it, only root writes there."""
    if seen["directory"]:
        return []
    return [step("directory", wanted["mount_point"], None, "0000 root")]


def volume_steps(record, choice, device):
    """Return the steps that make the array and the file system; blank disks are formatted, ours are put together."""
    devices = [one["device"] for one in choice["disks"]]
    steps, array = [], record["array"]
    if array and choice["blank"]:
        steps.append(
            step("array", "/dev/md/" + array["name"], None, "RAID0 of " + ", ".join(devices), create(array, devices))
        )
    elif array and device is None:
        path = "/dev/md/" + array["name"]
        steps.append(step("assembly", path, "stopped", "running", ["mdadm", "--assemble", path] + devices))
        return steps
    if choice["blank"] or not device["signatures"]:
        place = "/dev/md/" + array["name"] if array and choice["blank"] else device["device"]
        steps.append(step("filesystem", place, None, "XFS", make_filesystem(record, place, len(devices))))
    return steps


def create(array, devices):
    """Return the command for a RAID0 that any host may assemble under its name; it asks where it finds something, and then fails."""
    return [
        "mdadm", "--create", "/dev/md/" + array["name"], "--level=0", "--metadata=1.2", "--homehost=any",
        "--name=" + array["name"], "--uuid=" + array["uuid"], "--chunk=%d" % array["chunk_kib"],
        "--raid-devices=%d" % len(devices),
    ] + devices  # fmt: skip


def make_filesystem(record, device, count):
    """Return the command for XFS, aligned to the stripes; without -f it refuses a device that has something."""
    command = ["mkfs.xfs", "-q", "-m", "uuid=" + record["filesystem"]]
    if record["array"]:
        chunk = record["array"]["chunk_kib"]
        log = chunk if chunk <= LOG_STRIPE_KIB else LOG_STRIPE_DEFAULT_KIB
        command += ["-d", "su=%dk,sw=%d" % (chunk, count), "-l", "su=%dk" % log]
    return command + [device]


def mount_steps(wanted, seen, device):
    """Return the steps that mount it with its options and give it to its user."""
    point, mounted = wanted["mount_point"], seen["mounted"]
    steps = []
    if not mounted:
        steps.append(step("mount", point, "not mounted", "mounted", ["mount", point]))
    else:
        missing = [one for one in kernel_options(wanted["options"]) if one not in mounted["options"]]
        if missing:
            command = ["mount", "-o", "remount," + ",".join(missing), point]
            steps.append(step("remount", point, ",".join(mounted["options"]), ",".join(missing), command))
    owner = {"uid": wanted["uid"], "gid": wanted["gid"], "mode": wanted["mode"]}
    if not mounted or {key: seen["directory"][key] for key in owner} != owner:
        before = {key: seen["directory"][key] for key in owner} if mounted else None
        steps.append(step("owner", point, before, owner))
    return steps


def kernel_options(options):
    """Return those options that a mounted file system shows, in the kernel's words."""
    return [_shown(one) for one in options if one not in UNSHOWN and not one.lower().startswith("x-")]


def _shown(option):
    size = SIZE.match(option)
    if not size:
        return SHOWN.get(option, option)
    return "%s=%dk" % (size.group(1), int(size.group(2)) * FACTORS[size.group(3).lower()] // 1024)


def plan_absent(seen, record, disks, destroy):
    """Return (steps, problems) that take the scratch down; ``disks``: those that carry it. Data goes only with ``destroy``."""
    point, device = record["mount_point"], device_of(seen, record, disks) if disks else None
    ours = seen["mounted"] and device and seen["mounted"]["number"] == device["number"]
    if ours and seen["users"]:
        return [], [problem("in_use", point, users=seen["users"])]
    steps = [step("unmount", point, "mounted", "not mounted", ["umount", point])] if ours else []
    steps += _without_lines(seen, record)
    if destroy and device:
        steps.append(_destruction(device["device"]))
    if record["array"] and device:
        steps.append(step("stop", device["device"], "running", "stopped", ["mdadm", "--stop", device["device"]]))
    if destroy and record["array"]:
        steps += [_destruction(one["device"]) for one in disks]
    if point in record["made"] and seen["directory"] and (ours or not seen["mounted"]):
        steps.append(step("directory", point, "empty", None))
    if record["trim"] and seen["trim"]:
        steps.append(step("timer", TIMER, "enabled", "disabled", ["systemctl", "disable", "--now", TIMER]))
    return steps, []


def _without_lines(seen, record):
    key = config_lines.fstab_entry(record, ["nofail"]).split()[:2]
    steps = [_text_step(config_lines.FSTAB, seen["fstab"], None, key)]
    if record["array"]:
        conf = seen["mdadm_conf"]
        steps.append(_text_step(conf["path"], conf["text"], None, config_lines.array_entry(record).split()[:2]))
        if steps[-1] and steps[-1]["after"] == "" and conf["path"] in record["made"]:
            steps[-1]["after"] = None
        if (steps[-1] or "initramfs" in record["pending"]) and seen["initramfs"]:
            steps.append(
                step("initramfs", "early user space", "with the array", "without the array", seen["initramfs"])
            )
    return [one for one in steps if one]


def _destruction(device):
    return step("destruction", device, "data", None, ["wipefs", "--all", device])
