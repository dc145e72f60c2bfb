# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Denials of SELinux to training, or around the collection's own files, since the node booted: the end of the audit log.

One event is several lines with one number: the denial (AVC), the system call (SYSCALL), its files (PATH, CWD) and the command line
(PROCTITLE). Text that a program chose is in double quotes, or in hexadecimal digits where it has what could be mistaken.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import binascii
import errno
import os
import re

from .selinux import ENFORCE

LOG = "/var/log/audit/audit.log"
LIMIT = 1 << 20
MOST = 20
# Denied, they stop nothing: under NoNewPrivileges= a program goes on in the domain of its caller, as the kernel's check_nnp_nosuid has it.
WITHOUT_EFFECT = {"nnp_transition", "nosuid_transition"}
DENIALS = ("AVC", "USER_AVC")
_RECORD = re.compile(r"(?:node=\S+ )?type=(\w+) msg=audit\((\d+)\.\d+:(\d+)\): ?(.*)")
_DENIED = re.compile(r"avc:\s+denied\s+\{ ([^}]*) \}")
_FIELD = re.compile(r"(\w+)=(\"[^\"]*\"|[^\s'\"]+)")
_TEXTS = ("comm", "exe", "path", "name", "cwd", "proctitle", "cmdline")
_PLACES = ("exe", "path", "name", "cwd", "proctitle", "cmdline")


def read_denials(tree, uid, limit=LIMIT):
    """Return {problem, complete, denials}; None for a node without SELinux. ``uid``: of the training user, or None.

    ``problem``: absent or unreadable where the log, boot_unknown where the time of the boot is not available; ``complete``: whether
    what was read reaches back to the boot; ``denials``: see ``denials``.
    """
    if not tree.exists(ENFORCE):
        return None
    boot = boot_time(tree.text("/proc/stat") or "")
    try:
        size = os.path.getsize(tree.path(LOG))
        with open(tree.path(LOG), "rb") as stream:
            stream.seek(max(size - limit, 0))
            text = stream.read(limit).decode("utf-8", "replace")
    except EnvironmentError as error:
        return _answer("absent" if error.errno == errno.ENOENT else "unreadable")
    if boot is None:
        return _answer("boot_unknown")
    found = events(text)  # half a line at the start is not an event
    rotated = size <= limit and not _written_since(tree, LOG + ".1", boot)
    reaches = any(event["time"] < boot for event in found)
    return _answer(None, reaches or rotated, denials([one for one in found if one["time"] >= boot], uid))


def _answer(problem, complete=False, found=()):
    return {"problem": problem, "complete": complete, "denials": list(found)[:MOST]}


def _written_since(tree, path, time):
    try:
        return os.path.getmtime(tree.path(path)) >= time
    except EnvironmentError:
        return False


def boot_time(stat):
    """Return when the kernel started, in seconds since the epoch, as /proc/stat has it; None without it."""
    match = re.search(r"(?m)^btime (\d+)$", stat)
    return int(match.group(1)) if match else None


def events(text):
    """Return [{time, records: [(type, text)]}] in the order of their first lines; other lines are left out."""
    found, order = {}, []
    for line in text.splitlines():
        match = _RECORD.match(line)
        if not match:
            continue
        kind, time, number, rest = match.groups()
        if (time, number) not in found:
            found[time, number] = {"time": int(time), "records": []}
            order.append((time, number))
        found[time, number]["records"].append((kind, rest))
    return [found[one] for one in order]


def denials(found, uid):
    """Return the denials to training or around our files: {command, operations, target, kind, permissive, count}.

    ``target``: path, else name, else type of what was asked for; ``kind``: its class, such as file or process. What was denied
    several times is there once.
    """
    counts, order = {}, []
    for event in found:
        records = [(kind, text, fields(text)) for kind, text in event["records"]]
        if not any(is_ours(known, uid) for _kind, _text, known in records):
            continue
        for kind, text, known in records:
            match = _DENIED.search(text) if kind in DENIALS else None
            if match and not set(match.group(1).split()) <= WITHOUT_EFFECT:
                one = _denial(match.group(1), known, records)
                order += [one] if one not in counts else []
                counts[one] = counts.get(one, 0) + 1
    keys = ("command", "operations", "target", "kind", "permissive")
    return [dict(zip(keys, one), count=counts[one]) for one in order]


def _denial(operations, known, records):
    paths = [other["name"] for kind, _text, other in records if kind == "PATH" and other.get("name")]
    named = known.get("name")
    full = next((path for path in paths if named and path.endswith("/" + named)), named)
    target = known.get("path") or full or context_type(known.get("tcontext", ""))
    command = known.get("comm") or next((other["comm"] for _kind, _text, other in records if other.get("comm")), "")
    return (command, operations, target, known.get("tclass", ""), known.get("permissive") == "1")


def context_type(context):
    """Return the type of user:role:type:level."""
    parts = context.split(":")
    return parts[2] if len(parts) > 2 else context


def fields(text):
    """Return {key: value} of a record; where a key comes twice, the first counts."""
    found = {}
    for key, value in _FIELD.findall(text):
        found.setdefault(key, decoded(value) if key in _TEXTS else value)
    return found


def decoded(value):
    """Return a text as the program had it: out of its quotes, or out of its hexadecimal digits; zero bytes become spaces."""
    if value.startswith('"'):
        return value.strip('"')
    if re.match(r"(?:[0-9A-F]{2})+$", value):
        return binascii.unhexlify(value).decode("utf-8", "replace").replace("\0", " ")
    return "" if value == "(null)" else value


def is_ours(known, uid):
    """Return True if a record is of the training user or has its rights, or names a program or file of the collection.

    sshd reads the keys of a user with the user's rights: ``euid``.

    Others are denied GPUs, too, such as monitors and desktops (performancecopilot/pcp#2209): that is not a matter of training.
    """
    if uid is not None and str(uid) in (known.get("uid"), known.get("euid")):
        return True
    words = " ".join(known.get(key, "") for key in _PLACES).split()
    return any("allreduce" in word or word == "/etc/nccl.conf" for word in words)
