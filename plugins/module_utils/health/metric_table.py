# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of a node's health, one record each: what a textfile collector of node exporter finds after each run.

DCGM's names where the meaning is the same, with the labels of dcgm-exporter, so that rules and dashboards serve either.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from collections import namedtuple

# ``kind``: gauge or counter. ``labels``: their names, in order. ``value``: what metrics.py takes it from.
Metric = namedtuple("Metric", "name kind meaning labels value source")

# As dcgm-exporter up to 4.8 writes them; its main branch renames Hostname to hostname (its pull request 655).
GPU_LABELS = ("gpu", "UUID", "device", "modelName", "Hostname")
FINDING_LABELS = ("code", "subject", "severity", "action")
COUNTERS = "NVIDIA/dcgm-exporter, etc/default-counters.csv"
FIELDS = "NVIDIA/DCGM, dcgmlib/dcgm_fields.h"


def node(name, meaning, value, labels=()):
    """Return a metric of ours."""
    return Metric(name, "gauge", meaning, tuple(labels), value, "ours")


def gpu(name, meaning, value, kind="gauge", source=COUNTERS):
    """Return a metric of each GPU that DCGM has, too."""
    return Metric("DCGM_FI_DEV_" + name, kind, meaning, GPU_LABELS, value, source)


METRICS = (
    node("allreduce_health_verdict", "1 for the verdict of the last run, 0 for the others", "verdict", ("verdict",)),
    node("allreduce_health_finding", "1 for each present finding: its check, its subject, its severity and the class of its action",
         "findings", FINDING_LABELS),
    node("allreduce_health_last_run_timestamp_seconds", "when the last run ended, in seconds since 1970", "timestamp"),
    node("allreduce_health_run_duration_seconds", "how long the last run took", "duration_seconds"),
    node("allreduce_health_gpus_expected", "GPUs that are declared, or that are on the bus", "gpus_expected"),
    node("allreduce_health_gpus_answering", "GPUs that NVML shows and that can be used", "gpus_answering"),
    node("allreduce_clock_offset_seconds", "by how much the kernel corrects the clock, where something keeps it in time",
         "clock_offset_seconds"),
    gpu("GPU_TEMP", "degrees Celsius of the GPU", "temperature"),
    gpu("MEMORY_TEMP", "degrees Celsius of the GPU's memory", "memory_temperature"),
    gpu("SLOWDOWN_TEMP", "degrees Celsius at which the hardware slows down", "slowdown_temperature", source=FIELDS),
    gpu("THERMAL_VIOLATION", "nanoseconds for which heat has lowered the clocks", "thermal_slowdown_ns", "counter"),
    gpu("POWER_USAGE", "watts that the GPU draws", "power_watts"),
    gpu("GPU_UTIL", "per cent of the time in which a kernel ran", "utilisation"),
    gpu("FB_USED", "MiB of memory in use", "memory_used_mib"),
    gpu("FB_FREE", "MiB of memory that are free", "memory_free_mib"),
    gpu("SM_CLOCK", "MHz of the multiprocessors", "sm_clock_mhz"),
    gpu("MEM_CLOCK", "MHz of the memory", "memory_clock_mhz"),
    gpu("ECC_SBE_VOL_TOTAL", "corrected memory errors since the driver was loaded", "corrected_errors", "counter"),
    gpu("ECC_DBE_VOL_TOTAL", "uncorrected memory errors since the driver was loaded", "uncorrected_errors", "counter"),
    gpu("ROW_REMAP_PENDING", "1 if a row is remapped at the next reset", "row_remap_pending", source=FIELDS),
    gpu("ROW_REMAP_FAILURE", "1 if a row could not be remapped", "row_remap_failed"),
    gpu("XID_ERRORS", "the last Xid of the kernel log that still counts, 0 without one", "last_xid"),
    gpu("PCIE_REPLAY_COUNTER", "packets that the PCIe link had to repeat", "pcie_replays", "counter"),
    gpu("PCIE_LINK_GEN", "generation at which the PCIe link runs now", "pcie_generation", source=FIELDS),
    gpu("PCIE_LINK_WIDTH", "lanes that the PCIe link has now", "pcie_width", source=FIELDS),
    gpu("GPU_RECOVERY_ACTION", "what the driver asks for: NVML_FI_DEV_GET_GPU_RECOVERY_ACTION of nvml.h, 0 for nothing",
        "recovery_action", source=FIELDS),
)  # fmt: skip
