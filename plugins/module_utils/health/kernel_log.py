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
# As the driver writes them: kernel-open/nvidia/nv.c and nv-pci.c, src/nvidia/arch/nvalloc/unix/src/osinit.c, kernel_rc.c and kernel_gsp.c of
# NVIDIA/open-gpu-kernel-modules; SXid: NVIDIA Fabric Manager User Guide. Older drivers write no "PCI:" before the address; that of a
# MIG instance has its numbers behind it. Some messages have several lines, each with a prefix of its own or with none.
# Each alternative begins with a literal text, which makes the search fast.
LINES = r"(?:(?!Xid|The NVIDIA GPU)[\s\S]){0,600}?"
EVENT = re.compile(
    r"NVRM: (?:"
    r"(?P<load>loading NVIDIA UNIX )"
    r"|Xid \((?:PCI:)?" + ADDRESS + r"(?: GPU-[^)]*)?\): (?P<xid>\d+)(?P<rest>[^\n]*)"
    r"|GPU (?:at )?(?:PCI:)?" + ADDRESS + r":? (?:GPU )?(?P<bus>has fallen off the bus)"
    r"|The NVIDIA GPU " + ADDRESS + LINES + r"(?:(?P<gone>fallen off the bus)|(?P<unsupported>is not supported)|(?P<closed>requires use of))"
    r"|(?P<bar>This PCI I/O region assigned to your NVIDIA device is invalid)" + LINES + r"\(PCI:" + ADDRESS + r"\)"
    r"|GPU " + ADDRESS + r": RmInitAdapter (?P<init>failed)"
    r"|(?:GPU(?P<instance>\d+) )?(?:(?P<gsp>_kgspLog(?:RpcTimeout|GspTimeout|Xid119|RpcSanityCheckFailure)|(?:_kgsp\w+: )?\*+ GSP Timeout)"
    r"|nv(?:Assert|Check)OkFailed\w*: [^\n\[]{0,80}(?P<needed>\[NV_ERR_RESET_REQUIRED\]))"
    r")|SXid \((?:PCI:)?" + ADDRESS + r"\): (?P<sxid>\d+), (?P<how>[Nn]on-fatal|Fatal)"
    # A device is enabled where it is probed again, and told of where it came onto the bus, at boot or later: drivers/pci/setup-res.c,
    # pci.c, probe.c of the kernel.
    r"|nvidia(?:-nvlink: (?P<begin>Nvlink Core is being initialized)|-nvswitch: (?P<switch>Probing device) " + ADDRESS +
    r"|: probe of " + ADDRESS + r" (?P<probe>failed with error)"
    r"| " + ADDRESS + r": (?:probe with driver nvidia (?P<probe_of>failed with error)|(?P<again>enabling device|reset done)))"
    r"|pci " + ADDRESS + r": (?P<came>\[10de:)"
)  # fmt: skip
ADDRESSES = sorted(set(range(1, EVENT.groups + 1)) - set(EVENT.groupindex.values()))
KINDS = {"bus": "off_bus", "gone": "off_bus", "xid": "xid", "sxid": "sxid", "init": "init", "unsupported": "unsupported",
         "closed": "unsupported", "bar": "bar", "gsp": "gsp", "needed": "reset", "probe": "probe", "probe_of": "probe"}  # fmt: skip
# What has the number of a GPU instead of its address.
NUMBERED = ("gsp", "reset")
# What the driver tells while it is loaded, before it says so: nvidia_init_module of nv.c.
PROBED = ("gone", "unsupported", "bar", "probe", "probe_of")
# What is looked for behind an Xid alone is compiled there.
CHANGED = r" to 0x([0-9a-fA-F]+)"
# An event of NVLink 5: "149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 …".
FATAL = r"\bFatal\b"
LINK_DOWN = r"\bNETIR_LINK_(?:EVT|DOWN) [^(]*\(0x([0-9a-fA-F]+)"
# By which number the driver's log calls a GPU whose firmware does not answer.
INSTANCE = r"Xid \((?:PCI:)?" + ADDRESS + r"\): \d+,[^\n]* RPC response from GPU(\d+) GSP"
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
    """Return True if records of the ring buffer go back to boot, or to the load of the driver: what is older does not count."""
    first = SEQUENCE.match(text)
    return first is None or int(first.group(1)) == 0 or any(is_load(found) for found in EVENT.finditer(text))


def is_load(found):
    return bool(found.group("load") or found.group("begin"))


def is_record(line):
    """Return True if a line is a record of the ring buffer, which says which one it is."""
    return SEQUENCE.match(line) is not None


def read_journal(command=JOURNAL, seconds=SECONDS):
    """Return the kernel's messages of this boot from the journal; None where it cannot be asked, or has none."""
    # Only here, where a program is started: it is compiled on each run otherwise.
    from ..host.probes import run

    code, lines = run(list(command), seconds)
    return "\n".join(lines) or None if code == 0 else None


def find_events(text, numbers=None):
    """Return the events that still count: [{``kind``, ``address`` without function, ``number``, ``fatal``}], each once.

    What was before the driver's last load does not count, but what it told of its GPUs while it was loaded does; nor what was before a
    GPU, or the NVSwitches with their GPUs, were reset or probed again, or before the driver took its demand for recovery back.
    ``numbers``: {number of a GPU in the driver's log: its address}, where the log itself does not tell.
    """
    events = Events(text, numbers)
    for found in EVENT.finditer(text.replace("\\x0a", "\n")):
        if found.group("begin"):
            events.begin()
        elif found.group("load"):
            events.load()
        elif found.group("switch"):
            events.reset_fabric(address_in(found))
        elif found.group("again") or found.group("came"):
            events.forget(address_in(found))
        else:
            events.add(parse(found), any(found.group(name) for name in PROBED))
    return [dict(zip(("kind", "address", "number", "fatal"), key)) for key in events.told]


class Events:
    """Events in the order of the log, without those that no longer count."""

    def __init__(self, text, numbers):
        # {(kind, address, number, fatal): (after which load it was told last, whether only a load tells that)}
        self.told, self.loads, self.begun = {}, 0, False
        self.numbers = dict(numbers or {})
        if " GSP" in text or "[NV_ERR_RESET_REQUIRED]" in text:
            known = re.findall(INSTANCE, text)
            self.numbers.update((int(number), address_of(address)) for address, number in known)

    def begin(self):
        """Start a load: the kernel modules of NVLink and NVSwitch are the first that it starts."""
        self.told, self.begun = {}, True

    def load(self):
        """End a load. Where the log has no start of it, what the driver tells in no other situation belongs to it."""
        if not self.begun:
            self.told = {key: when for key, when in self.told.items() if when == (self.loads, True)}
        self.loads, self.begun = self.loads + 1, False

    def reset_fabric(self, switch):
        """Forget what a switch and all GPUs told: NVSwitches are only reset together with the GPUs."""
        self.told = {key: when for key, when in self.told.items() if key[0] == "sxid" and key[1] != switch}

    def forget(self, address, kind=None):
        """Forget what a GPU told, or its events of one kind."""
        self.told = {key: when for key, when in self.told.items() if key[1] != address or kind not in (None, key[0])}

    def add(self, event, probed):
        kind, address, number, fatal = event
        if kind in NUMBERED:
            address = self.numbers.get(number)
        if kind == "recovery":
            self.forget(address, "recovery" if number else None)
            if not number:
                return
        self.told.pop((kind, address, number, fatal), None)  # the last one is told last
        self.told[kind, address, number, fatal] = self.loads, probed


def address_in(found):
    """Return the address in what EVENT matched, without function; None where there is none."""
    return address_of(next((text for text in map(found.group, ADDRESSES) if text), None))


def address_of(text):
    return normalise_address(text).partition(".")[0] if text else None


def parse(found):
    """Return (kind, address, number, fatal); of kind recovery the number is that of the action, of NUMBERED that of the GPU."""
    kind, number, fatal = next(kind for name, kind in KINDS.items() if found.group(name)), None, True
    if kind == "xid":
        number, fatal = int(found.group("xid")), is_fatal(found.group("rest"))
        changed = re.search(CHANGED, found.group("rest")) if number == RECOVERY_CHANGED else None
        if changed:
            kind, number = "recovery", int(changed.group(1), 16)
    elif kind == "sxid":
        number, fatal = int(found.group("sxid")), found.group("how") == "Fatal"
    elif kind in NUMBERED and found.group("instance"):
        number = int(found.group("instance"))
    return kind, address_in(found), number, fatal


def is_fatal(rest):
    """Return True if an event of NVLink 5 needs a reset, from what stands behind its number."""
    down = re.search(LINK_DOWN, rest)
    return bool(re.search(FATAL, rest)) and not (down and int(down.group(1), 16) >> 20 & 0x3F in LINK_DOWN_IGNORED)
