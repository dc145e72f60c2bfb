# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what tells of a GPU's health: counters and clocks from NVML."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.sysfs import normalise_address

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
    """Return {pci_bus_id: counters} of every GPU that has an address; a counter the GPU does not have is None."""
    gpus = {}
    for index in range(nvml.call("DeviceGetCount") or 0):
        nvml.take_errors()
        handle = nvml.call("DeviceGetHandleByIndex", index)
        pci = nvml.call("DeviceGetPciInfo", handle) if handle is not None else None
        if pci is not None:
            address = pci.busId.decode("ascii") if isinstance(pci.busId, bytes) else pci.busId
            gpus[normalise_address(address)] = dict(read_counters(nvml, handle), nvml_errors=nvml.take_errors())
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
