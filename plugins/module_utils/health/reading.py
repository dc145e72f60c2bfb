# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what tells of a GPU's health: counters and clocks from NVML, Xid events and modules of kernels from files."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import os
import re

from ..machine.sysfs import normalise_address

# Older drivers write no "PCI:", newer ones name the process behind the number.
XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)")
# Bits of nvmlClocksThrottleReason* (nvml.h).
CLOCK_REASONS = (
    (0x1, "idle"),
    (0x2, "application_clocks"),
    (0x4, "software_power_cap"),
    (0x8, "hardware_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "software_thermal"),
    (0x40, "hardware_thermal"),
    (0x80, "power_brake"),
    (0x100, "display_clocks"),
)


def read_gpus(nvml):
    """Return {pci_bus_id: counters} of every GPU that answers; a counter the GPU does not have is None."""
    gpus = {}
    for index in range(nvml.call("DeviceGetCount") or 0):
        handle = nvml.call("DeviceGetHandleByIndex", index)
        pci = nvml.call("DeviceGetPciInfo", handle) if handle is not None else None
        if pci is not None:
            address = pci.busId.decode("ascii") if isinstance(pci.busId, bytes) else pci.busId
            gpus[normalise_address(address)] = read_counters(nvml, handle)
    return gpus


def read_counters(nvml, handle):
    """Return a GPU's counters since the driver was loaded, its clock reasons and its performance state."""
    rows = nvml.call("DeviceGetRemappedRows", handle)
    retired = nvml.call("DeviceGetRetiredPagesPendingStatus", handle)
    return {
        "uncorrected_errors": nvml.call("DeviceGetTotalEccErrors", handle, 1, 0),
        "remapped_rows": dict(zip(("correctable", "uncorrectable", "pending", "failed"), rows)) if rows else None,
        "retired_pages_pending": None if retired is None else bool(retired),
        "clock_reasons": clock_reasons(nvml.call("DeviceGetCurrentClocksThrottleReasons", handle)),
        "performance_state": nvml.call("DeviceGetPerformanceState", handle),
    }


def clock_reasons(bits):
    """Return the codes of the set bits; None where NVML did not tell."""
    return None if bits is None else [code for bit, code in CLOCK_REASONS if bits & bit]


def read_kernel_log(path):
    """Return the kernel log's records as one text; None where it cannot be read.

    Reading /dev/kmsg takes nothing from it.
    """
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
                break
            if not record:
                break
            records.append(record.decode("utf-8", "replace"))
    finally:
        os.close(descriptor)
    return "".join(records)


def find_xids(text):
    """Return [(pci address without function, Xid)] in the order of the log, each pair once."""
    found = []
    for address, xid in XID.findall(text):
        event = (normalise_address(address + ".0").rpartition(".")[0], int(xid))
        if event not in found:
            found.append(event)
    return found
