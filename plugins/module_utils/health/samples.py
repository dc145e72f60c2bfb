# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what a GPU does at the moment: power, load, memory, clocks. No check goes by it; metrics.py tells it."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.sysfs import normalise_address
from .kernel_log import find_events

SM, MEMORY = 1, 2  # nvmlClockType_t
SLOWDOWN = 1  # nvmlTemperatureThresholds_t
THERMAL = (
    "FI_DEV_PERF_POLICY_THERMAL"  # nanoseconds, as NVIDIA/DCGM has it: dcgmlib/src/dcgm_fields.cpp, THERMAL_VIOLATION
)
MIB = 1024 * 1024


def read_samples(nvml):
    """Return {pci_bus_id: sample} of the GPUs that answer; what a GPU does not tell is None."""
    found = {}
    for index in range(nvml.call("DeviceGetCount") or 0):
        handle = nvml.call("DeviceGetHandleByIndex", index)
        pci = nvml.call("DeviceGetPciInfo", handle) if handle is not None else None
        if pci is not None:
            address = pci.busId.decode("ascii") if isinstance(pci.busId, bytes) else pci.busId
            found[normalise_address(address)] = read_sample(nvml, handle)
    return found


def read_sample(nvml, handle):
    """Return one GPU's sample, by the values of metric_table."""
    power = nvml.call("DeviceGetPowerUsage", handle)
    load = nvml.call("DeviceGetUtilizationRates", handle)
    memory = read_memory(nvml, handle)
    return {
        "power_watts": None if power is None else power / 1000.0,
        "utilisation": load.gpu if load else None,
        "memory_used_mib": memory.used // MIB if memory else None,
        "memory_free_mib": memory.free // MIB if memory else None,
        "sm_clock_mhz": nvml.call("DeviceGetClockInfo", handle, SM),
        "memory_clock_mhz": nvml.call("DeviceGetClockInfo", handle, MEMORY),
        "slowdown_temperature": nvml.call("DeviceGetTemperatureThreshold", handle, SLOWDOWN),
        "thermal_slowdown_ns": nvml.fields(handle, [(THERMAL, 0)]).get((THERMAL, 0)),
    }


def read_memory(nvml, handle):
    """Return memory as DCGM counts it: what the driver reserves is not in use; older drivers do not tell it apart."""
    version = getattr(nvml.pynvml, "nvmlMemory_v2", None)
    memory = nvml.call("DeviceGetMemoryInfo", handle, version) if version else None
    return memory or nvml.call("DeviceGetMemoryInfo", handle)


def gpu_values(gpu, counters, sample, xids):
    """Return the values of metric_table for one GPU of gpu_node.

    ``counters``: see health.reading, ``xids``: see last_xids; None where nothing was read.
    """
    counters, rows = counters or {}, (counters or {}).get("remapped_rows") or {}
    values = {name: counters.get(name) for name in (
        "temperature", "memory_temperature", "corrected_errors", "uncorrected_errors", "pcie_replays", "recovery_action")}  # fmt: skip
    return dict(
        sample or {},
        row_remap_pending=rows.get("pending"),
        row_remap_failed=rows.get("failed"),
        last_xid=None if xids is None else xids.get(gpu["pci_bus_id"].rpartition(".")[0], 0),
        pcie_generation=gpu["pcie"].get("generation"),
        pcie_width=gpu["pcie"].get("width"),
        **values,
    )


def last_xids(log):
    """Return {address without function: number of its last Xid that still counts}; None where the log could not be read."""
    if log is None:
        return None
    return {one["address"]: one["number"] for one in find_events(log) if one["kind"] == "xid"}
