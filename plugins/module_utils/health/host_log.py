# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what the kernel's log says of the machine around the GPUs: processes that were killed for lack of memory, hardware errors."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# As the kernel writes them: mm/oom_kill.c (before 5.0 "Kill process"; a control group at its own limit says "Memory cgroup out of
# memory", which is its job's matter), arch/x86/kernel/cpu/mce/core.c, drivers/edac/edac_mc.c, drivers/firmware/efi/cper.c.
EVENT = re.compile(
    r"(?P<oom>Out of memory(?: \(oom_kill_allocating_task\))?: Kill(?:ed)? process \d+ \((?P<process>[^)\n]*)\))"
    r"|(?P<memory>Uncorrected hardware memory error in user-access at [0-9a-f]+|EDAC MC\d+: \d+ UE [^\n]{0,80})"
    r"|\[Hardware Error\]: event severity: (?P<hardware>fatal|recoverable)"
)
# When: microseconds since boot of a record of the ring buffer, or seconds as the journal and dmesg write them.
STAMP = r"(?:\d+,\d+,(\d+),[^;\n]*;|\[\s*(\d+\.\d+)\])"
KINDS = ("oom", "memory", "hardware")


def find_host_events(log):
    """Return [{``kind``: one of KINDS, ``what``, ``seconds``: since boot, None where the log does not say}], in their order."""
    events = []
    for found in EVENT.finditer(log):
        kind = next(one for one in KINDS if found.group(one))
        what = found.group("process" if kind == "oom" else kind)
        start = log.rfind("\n", 0, found.start()) + 1
        events.append({"kind": kind, "what": what, "seconds": stamp(log, start)})
    return events


def stamp(log, start):
    found = re.compile(STAMP).match(log, start)
    if not found:
        return None
    return int(found.group(1)) / 1e6 if found.group(1) else float(found.group(2))
