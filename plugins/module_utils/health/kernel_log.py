# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what the kernel's log says of GPUs and NVSwitches: the ring buffer, or the journal where the ring has wrapped."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import os
import re

from ..machine.sysfs import normalise_address
from .xid_table import LINK_DOWN_IGNORED, RECOVERY_CHANGED

RING = "/dev/kmsg"
JOURNAL = ("journalctl", "--dmesg", "--boot", "--quiet", "--no-pager", "--output=short-monotonic")
SECONDS = 20
ADDRESS = r"((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?)"
# As the driver writes them: src/nvidia/arch/nvalloc/unix and src/nvidia/src/kernel/gpu/rc/kernel_rc.c of
# NVIDIA/open-gpu-kernel-modules; SXid: NVIDIA Fabric Manager User Guide. Older drivers write no "PCI:" before the address; that of a
# MIG instance has its numbers behind it.
EVENT = re.compile(
    r"NVRM: (?:"
    r"(?P<load>loading NVIDIA UNIX )"
    r"|Xid \((?:PCI:)?" + ADDRESS + r"(?: GPU-[^)]*)?\): (?P<xid>\d+)(?P<rest>[^\n]*)"
    r"|GPU (?:at )?(?:PCI:)?" + ADDRESS + r":? (?:GPU )?(?P<bus>has fallen off the bus)"
    r"|The NVIDIA GPU " + ADDRESS + r"(?:(?!Xid|The NVIDIA GPU)[\s\S]){0,600}?(?P<gone>fallen off the bus)"
    r"|GPU " + ADDRESS + r": RmInitAdapter (?P<init>failed)"
    r")|SXid \((?:PCI:)?" + ADDRESS + r"\): (?P<sxid>\d+), (?P<how>[Nn]on-fatal|Fatal)"
)  # fmt: skip
# What is looked for behind an Xid alone is compiled there.
CHANGED = r" to 0x([0-9a-fA-F]+)"
# An event of NVLink 5: "149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 …".
FATAL = r"\bFatal\b"
LINK_DOWN = r"\bNETIR_LINK_(?:EVT|DOWN) [^(]*\(0x([0-9a-fA-F]+)"
SEQUENCE = re.compile(r"^\d+,(\d+),")


def read(path):
    """Return the kernel's messages since boot as one text; None where they cannot be read.

    The journal is asked only where the ring buffer has lost its beginning, and the driver's with it.
    """
    text = read_ring(path)
    if path != RING or text is not None and is_whole(text):
        return text
    return read_journal() or text


def read_ring(path):
    """Return the records of the ring buffer; reading it takes nothing from it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (IOError, OSError):
        return None
    records = []
    try:
        while True:
            try:
                record = os.read(descriptor, 65536)
            except (IOError, OSError) as error:
                if error.errno == errno.EPIPE:  # the oldest records were overwritten meanwhile
                    continue
                if error.errno == errno.EAGAIN:  # the end
                    break
                return None
            if not record:
                break
            records.append(record.decode("utf-8", "replace"))
    finally:
        os.close(descriptor)
    return "".join(records)


def is_whole(text):
    """Return whether records of the ring buffer go back to boot, or to the load of the driver: what is older does not count."""
    first = SEQUENCE.match(text)
    return first is None or int(first.group(1)) == 0 or any(found.group("load") for found in EVENT.finditer(text))


def is_record(line):
    """Return whether a line is a record of the ring buffer, which says which one it is."""
    return SEQUENCE.match(line) is not None


def read_journal(command=JOURNAL, seconds=SECONDS):
    """Return the kernel's messages of this boot from the journal; None where it cannot be asked, or has none."""
    # Only here, where a program is started: it is compiled on each run otherwise.
    from ..host.probes import run

    code, lines = run(list(command), seconds)
    return "\n".join(lines) or None if code == 0 else None


def find_events(text):
    """Return the events that still count: [{``kind``, ``address`` without function, ``number``, ``fatal``}], each once.

    What was before the driver's last load does not count, nor what a GPU told before the driver took its demand for recovery back, as
    it does after a reset.
    """
    events = []
    for found in EVENT.finditer(text.replace("\\x0a", "\n")):
        if found.group("load"):
            events = []
            continue
        event = parse(found)
        if event["kind"] == "recovery":
            stale = None if event["number"] == 0 else "recovery"
            events = [one for one in events if one["address"] != event["address"] or stale and one["kind"] != stale]
        if event not in events and (event["kind"], event["number"]) != ("recovery", 0):
            events.append(event)
    return events


def parse(found):
    """Return the event of a line: kind xid, recovery (number: of the action), sxid, off_bus or init."""
    address = normalise_address(next(text for text in found.group(2, 5, 7, 9, 11) if text)).partition(".")[0]
    kind, number, fatal = "off_bus", None, True
    if found.group("xid"):
        kind, number, fatal = "xid", int(found.group("xid")), is_fatal(found.group("rest"))
        changed = re.search(CHANGED, found.group("rest")) if number == RECOVERY_CHANGED else None
        if changed:
            kind, number = "recovery", int(changed.group(1), 16)
    elif found.group("sxid"):
        kind, number, fatal = "sxid", int(found.group("sxid")), found.group("how") == "Fatal"
    elif found.group("init"):
        kind = "init"
    return {"kind": kind, "address": address, "number": number, "fatal": fatal}


def is_fatal(rest):
    """Return whether an event of NVLink 5 needs a reset, from what stands behind its number."""
    down = re.search(LINK_DOWN, rest)
    return bool(re.search(FATAL, rest)) and not (down and int(down.group(1), 16) >> 20 & 0x3F in LINK_DOWN_IGNORED)
