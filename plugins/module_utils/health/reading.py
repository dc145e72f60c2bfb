# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what tells of a GPU's health: counters, clocks, temperatures and processes from NVML."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.nvml_errors import ABSENT, UNUSABLE, worst
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


# NVML_FI_* of nvml.h. Of links: those of single ones, which Blackwell and newer count as recoveries only, and the sums of older GPUs.
FIELDS = (
    "FI_DEV_ECC_DBE_AGG_TOTAL",
    "FI_DEV_PCIE_REPLAY_COUNTER",
    "FI_DEV_GET_GPU_RECOVERY_ACTION",
    "FI_DEV_MEMORY_TEMP",
    "FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT",
    "FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT",
)
LINK_FIELDS = {
    "replays": ("FI_DEV_NVLINK_ERROR_DL_REPLAY",),
    "recoveries": ("FI_DEV_NVLINK_ERROR_DL_RECOVERY", "FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS"),
    "crc_errors": ("FI_DEV_NVLINK_ERROR_DL_CRC",),
}
LINK_SUMS = {
    "replays": ("FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",),
    "recoveries": ("FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",),
    "crc_errors": ("FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"),
}
RETIREMENT_CAUSES = (0, 1)  # nvmlPageRetirementCause_t: several single-bit errors, one double-bit error
GPU_SENSOR, SHUTDOWN, SLOWDOWN, MEMORY_MAX = 0, 0, 1, 2  # nvmlTemperatureSensors_t, nvmlTemperatureThresholds_t
GRAPHICS, MEMORY = 0, 2  # nvmlClockType_t
MIB = 1024 * 1024


def read_gpus(nvml, gpus=()):
    """Return {pci_bus_id: counters} of every GPU that has an address; a counter the GPU does not have is None.

    ``gpus``: those of gpu_node, whose active NVLinks are asked. One that NVML opened for it and opens no more has its reason only.
    """
    links = {gpu["pci_bus_id"]: [link["link"] for link in gpu["nvlinks"] if link["active"]] for gpu in gpus}
    known = {gpu["index"]: gpu["pci_bus_id"] for gpu in gpus}
    found = {}
    for index in range(nvml.call("DeviceGetCount") or 0):
        nvml.take_errors()
        handle = nvml.call("DeviceGetHandleByIndex", index)
        pci = nvml.call("DeviceGetPciInfo", handle) if handle is not None else None
        if pci is not None:
            address = pci.busId.decode("ascii") if isinstance(pci.busId, bytes) else pci.busId
            address = normalise_address(address)
            counters = read_counters(nvml, handle, links.get(address, ()))
            found[address] = dict(counters, nvml_errors=nvml.take_errors())
        elif worst(nvml.errors) in UNUSABLE and index in known:
            found[known[index]] = {"nvml_errors": nvml.take_errors()}
    return found


def read_counters(nvml, handle, links):
    """Return a GPU's counters since the driver was loaded, its state, and what it says of its own parts."""
    counters = {}
    for read in (read_memory, read_clocks, read_condition):
        counters.update(guarded(nvml, read, handle))
    counters.update(guarded(nvml, read_fields, handle, links))
    return counters


def guarded(nvml, read, *arguments):
    """Return the values of a reader; one that crashes leaves its values unread, and is recorded among NVML's errors."""
    try:
        return read(nvml, *arguments)
    except Exception as error:  # pylint: disable=broad-except
        nvml.errors[read.__name__] = type(error).__name__
        return {}


def read_memory(nvml, handle):
    """Return errors of memory and SRAM, and what was or has to be taken out of use."""
    rows = nvml.call("DeviceGetRemappedRows", handle)
    retired = nvml.call("DeviceGetRetiredPagesPendingStatus", handle)
    return {
        "uncorrected_errors": nvml.call("DeviceGetTotalEccErrors", handle, 1, 0),
        "corrected_errors": nvml.call("DeviceGetTotalEccErrors", handle, 0, 0),
        "remapped_rows": dict(zip(("correctable", "uncorrectable", "pending", "failed"), rows)) if rows else None,
        "retired_pages_pending": None if retired is None else bool(retired),
        "retired_pages": None if retired is None else read_retired_pages(nvml, handle),
        "sram": read_sram(nvml, handle),
        # Of a GPU that remaps rows only: NVML names no code for one that does not.
        "spare_rows": read_spare_rows(nvml, handle) if rows else None,
    }


def read_retired_pages(nvml, handle):
    """Return how many pages are out of use for either cause, pending ones with them; None of a GPU or a driver that does not tell."""
    found = [nvml.call("DeviceGetRetiredPages", handle, cause) for cause in RETIREMENT_CAUSES]
    return None if None in found else sum(len(pages) for pages in found)


def read_sram(nvml, handle):
    """Return {``threshold_exceeded``, ``uncorrected``: in the GPU's life}; None of a GPU or a driver that does not tell."""
    structure = getattr(nvml.pynvml, "c_nvmlEccSramErrorStatus_v1_t", None)
    status = structure() if structure else None
    if status is None or nvml.call("DeviceGetSramEccErrorStatus", handle, nvml.pynvml.byref(status)) is None:
        return None
    uncorrected = status.aggregateUncParity + status.aggregateUncSecDed
    return {"threshold_exceeded": bool(status.bThresholdExceeded), "uncorrected": uncorrected}


def read_spare_rows(nvml, handle):
    """Return the numbers of the GPU's memory banks by their spare rows: {max, high, partial, low, none}."""
    banks = nvml.call("DeviceGetRowRemapperHistogram", handle)
    return {name: getattr(banks, name) for name in ("max", "high", "partial", "low", "none")} if banks else None


def read_clocks(nvml, handle):
    return {
        "clock_reasons": clock_reasons(nvml.call("DeviceGetCurrentClocksThrottleReasons", handle)),
        "performance_state": nvml.call("DeviceGetPerformanceState", handle),
        "application_clocks": {
            "graphics": nvml.call("DeviceGetApplicationsClock", handle, GRAPHICS),
            "memory": nvml.call("DeviceGetApplicationsClock", handle, MEMORY),
        },
    }


def read_condition(nvml, handle):
    """Return temperatures with the GPU's own limits, whether its InfoROM is valid, and which processes compute on it."""
    margin, limit = read_margin(nvml, handle), None
    if (
        margin is None
    ):  # before Ada GPUs have limits in degrees Celsius, and later ones will have no others than the margin
        limit = nvml.call("DeviceGetTemperatureThreshold", handle, SLOWDOWN)
    processes = nvml.call("DeviceGetComputeRunningProcesses_v3", handle)
    return {
        "temperature": nvml.call("DeviceGetTemperature", handle, GPU_SENSOR),
        "temperature_margin": margin,
        "temperature_limit": limit,
        "memory_temperature_limit": nvml.call("DeviceGetTemperatureThreshold", handle, MEMORY_MAX),
        "shutdown_temperature": nvml.call("DeviceGetTemperatureThreshold", handle, SHUTDOWN),
        "inforom_valid": read_inforom(nvml, handle),
        "processes": processes
        and [{"pid": one.pid, "memory_mib": (one.usedGpuMemory or 0) // MIB} for one in processes],
    }


def read_margin(nvml, handle):
    """Return the degrees Celsius that the GPU is below its limit (T.Limit); None of one, or a driver, that does not tell."""
    return nvml.call("DeviceGetMarginTemperature", handle) if hasattr(nvml.pynvml, "nvmlMarginTemperature_v1") else None


def read_inforom(nvml, handle):
    """Return True if the InfoROM's checksums are right; its error is not an error of the question, and none is not an answer."""
    dummy, failed = nvml.attempt("DeviceValidateInforom", handle)
    if failed is None or failed["code"] == "corrupted_inforom":
        return failed is None
    if failed["code"] not in ABSENT:
        nvml.errors["DeviceValidateInforom"] = failed["code"]
    return None


def read_fields(nvml, handle, links):
    """Return the values that NVML has as fields, all in one call."""
    wanted = [(name, 0) for name in FIELDS]
    if links:
        wanted += [(name, link) for names in LINK_FIELDS.values() for name in names for link in links]
        wanted += [(name, 0) for names in LINK_SUMS.values() for name in names]
    values = nvml.fields(handle, wanted)
    aggregate, replays, action, memory, slowdown, shutdown = [values.get((name, 0)) for name in FIELDS]
    return {
        "aggregate_errors": aggregate,
        "pcie_replays": replays,
        "recovery_action": action,
        "memory_temperature": memory or None,  # memory at work is not at 0 degrees
        "slowdown_margin": slowdown,
        "shutdown_margin": shutdown,
        "nvlink_errors": read_link_errors(values) if links else None,
    }


def read_link_errors(values):
    """Return {replays, recoveries, crc_errors} over all links, as single links or else as sums; None of what NVML does not count."""
    found = {}
    for kind, names in LINK_FIELDS.items():
        # The first that is counted: what newer GPUs have instead of another is the same event.
        for counted in [(name,) for name in names] + [LINK_SUMS[kind]]:
            counts = [count for (name, dummy), count in values.items() if name in counted]
            if counts:
                break
        found[kind] = sum(counts) if counts else None
    return found


def clock_reasons(bits):
    """Return the codes of the set bits; None where NVML did not tell."""
    return None if bits is None else [code for bit, code in CLOCK_REASONS if bits & bit]
