# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that NVMe drives tell of themselves, as bytes of their log page 02h."""

import json
import struct

from . import machines
from .fault import Fault

# linux/nvme.h, struct nvme_smart_log: warning, temperature in kelvin, spare, its threshold, used, then ten numbers of 16 bytes, two
# times in minutes, eight sensors, and four counters of throttling.
PAGE = struct.Struct("<BHBBBB25x" + "16s" * 10 + "2I8H4I280x")
NUMBERS = (
    "read",
    "written",
    "host_reads",
    "host_writes",
    "busy",
    "cycles",
    "hours",
    "shutdowns",
    "media_errors",
    "log_entries",
)


def smart_log(warning=0, spare=100, threshold=10, used=3, kelvin=311, **numbers) -> str:
    """Return a drive's log in hexadecimal digits."""
    values = {"hours": 12000, "cycles": 90, "shutdowns": 4, "log_entries": 211, **numbers}
    counts = [values.get(name, 0).to_bytes(16, "little") for name in NUMBERS]
    return PAGE.pack(warning, kelvin, spare, threshold, used, 0, *counts, *[0] * 14).hex()


def drives(**pages: "str | tuple[str]") -> "dict[str, str]":
    """Return the files of a recorded machine with NVMe drives: the page of each, or (why it gave none,)."""
    files = {f"sys/class/nvme/{name}/state": "live\n" for name in pages}
    answers = {
        name: {"page": None, "refused": page[0]} if isinstance(page, tuple) else {"page": page, "refused": None}
        for name, page in pages.items()
    }
    return {**files, "sys/nvme_log.json": json.dumps(answers) + "\n"}


def broken() -> "list[Fault]":
    a40 = machines.a40_pcie()
    pages = {
        "less spare than its threshold": smart_log(0x01, spare=4), "too hot": smart_log(0x02, kelvin=360),
        "unreliable for its errors": smart_log(0x04), "read-only": smart_log(0x08), "its backup of memory has failed": smart_log(0x10),
        "its persistent memory is read-only": smart_log(0x20), "a warning that is not known yet": smart_log(0x40),
        "less spare, and no warning": smart_log(spare=9), "worn": smart_log(used=100), "worn beyond measure": smart_log(used=255),
        "media errors": smart_log(media_errors=1),
    }  # fmt: skip
    found = [
        Fault(f"an NVMe drive: {name}", a40.with_files(drives(nvme0=smart_log(), nvme1=page)), "degraded")
        for name, page in pages.items()
    ]
    refused = {
        "without permission": "permission",
        "that does not answer": "no answer",
        "that answers with an error": "status 0x2",
    }
    found += [
        Fault(f"an NVMe drive {name}", a40.with_files(drives(nvme0=smart_log(), nvme1=(why,))), "unknown")
        for name, why in refused.items()
    ]
    most = Fault("an NVMe drive: more worn than tolerated", a40.with_files(drives(nvme0=smart_log(used=80))), "degraded",
                 limits={"nvme_used_percent": 80})  # fmt: skip
    return [*found, most]


def well() -> "list[Fault]":
    a40 = machines.a40_pcie()
    pages = {
        "that is well": smart_log(), "that is nearly worn": smart_log(used=99, spare=10),
        "of a hypervisor, which tells nothing": smart_log(spare=0, threshold=0, used=0, kelvin=0, hours=0, cycles=0, shutdowns=0, log_entries=0),
    }  # fmt: skip
    tolerated = Fault("an NVMe drive with media errors that are tolerated", a40.with_files(drives(nvme0=smart_log(media_errors=7))), "ok",
                      limits={"max_nvme_media_errors": 7})  # fmt: skip
    return [
        *(Fault(f"an NVMe drive {name}", a40.with_files(drives(nvme0=page)), "ok") for name, page in pages.items()),
        tolerated,
    ]
