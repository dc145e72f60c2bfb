# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what a GPU says of its own parts: SRAM, spare rows, errors of links, temperatures, InfoROM, and what it needs."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.topology import gpu_label
from .findings import fault, judged, no_answer, number_of
from .xid_table import RECOVERY_ACTIONS

# Errors that a link of each PCIe generation may have in a minute and lane, at one in 10^12 bits: NVIDIA/DCGM, modules/health/
# DcgmHealthWatch.cpp, GetExpectedPcieReplayRate.
REPLAYS = tuple(speed * 60 / 1000.0 for speed in (2.5, 5, 8, 16, 32, 64))


def sram(name, counters, dummy_gpu, dummy_context):
    if counters["sram"]["threshold_exceeded"]:
        text = "%d uncorrected, above the threshold" % counters["sram"]["uncorrected"]
        return [fault("sram_errors", "threshold", "below NVIDIA's threshold", text, name)]
    return []


def aggregate(name, counters, dummy_gpu, context):
    most, errors = context["limits"]["max_aggregate_errors"], counters["aggregate_errors"]
    return [fault("aggregate_errors", "many", "at most %d" % most, errors, name)] if errors > most else []


def spare_rows(name, counters, dummy_gpu, context):
    most, none = context["limits"]["max_exhausted_banks"], counters["spare_rows"]["none"]
    return [fault("spare_rows", "exhausted", "at most %d banks without" % most, none, name)] if none > most else []


def nvlink_errors(name, counters, dummy_gpu, context):
    found, limits = [], context["limits"]
    for kind, option in (
        ("replays", "max_nvlink_replays"), ("recoveries", "max_nvlink_recoveries"), ("crc_errors", "max_nvlink_crc_errors"),
    ):  # fmt: skip
        count, most = counters["nvlink_errors"][kind], limits[option]
        if count is not None and most is not None and count > most:
            words = kind.replace("_", " ")
            found.append(fault("nvlink_errors", kind, "at most %d %s" % (most, words), "%d %s" % (count, words), name))
    return found


def pcie_replays(name, counters, gpu, context):
    """Judge the number of replays since boot; the link at its best may have more than as it is, so nothing is blamed too early."""
    most, count = context["limits"]["max_pcie_replays"], counters["pcie_replays"]
    generation, width = gpu["pcie"].get("max_generation"), gpu["pcie"].get("max_width")
    if most is None and generation and width and context["uptime_seconds"]:
        rate = REPLAYS[min(generation, len(REPLAYS)) - 1] * width
        most = int(rate * context["uptime_seconds"] / 60.0) + 1
    if most is not None and count > most:
        return [fault("pcie_replays", "many", "at most %d since boot" % most, count, name)]
    return []


def temperature(name, counters, dummy_gpu, context):
    """Judge the distance from the limit at which the hardware slows down: T.Limit on Ada and newer, else degrees Celsius."""
    least, found, distance = context["limits"]["temperature_margin"], [], counters["temperature_margin"]
    if distance is None:
        distance = counters["temperature_limit"] - counters["temperature"]
    else:
        distance -= min(counters["slowdown_margin"] or 0, 0)
    if distance <= least:
        text = "%d degrees below its limit" % distance
        found.append(fault("temperature", "hot", "more than %d degrees below its limit" % least, text, name))
    limit, memory = memory_limit(counters), counters["memory_temperature"]
    if limit and memory and memory >= limit:
        found.append(fault("temperature", "memory_hot", "below %d degrees" % limit, "%d degrees" % memory, name))
    return found


def memory_limit(counters):
    """Return the memory's own limit or, of a GPU that tells none, the temperature at which it shuts itself down; None where neither is known.

    That is ours: memory may be warmer than the processor, and none is meant to be as hot as that.
    """
    limit, margin, shutdown = [
        counters.get(key) for key in ("memory_temperature_limit", "temperature_margin", "shutdown_margin")
    ]
    if limit or counters.get("shutdown_temperature"):
        return limit or counters["shutdown_temperature"]
    if None in (margin, shutdown, counters.get("temperature")):
        return None
    return counters["temperature"] + margin - shutdown


def recovery_action(name, counters, dummy_gpu, dummy_context):
    number = counters["recovery_action"]
    if number == 0:
        return []
    code, words = RECOVERY_ACTIONS.get(number, ("monitor", None))
    text = words or "recovery action %d" % number
    return [fault("recovery_action", code, "none", text, name, words)]


def inforom(name, counters, dummy_gpu, dummy_context):
    return [] if counters["inforom_valid"] else [fault("inforom", "corrupted", "valid", "corrupted", name)]


def has_temperature(counters):
    if counters.get("temperature_margin") is not None:
        return True
    return None not in (counters.get("temperature"), counters.get("temperature_limit"))


def has(key):
    return lambda counters: counters.get(key) is not None


def counts_links(counters):
    return any(count is not None for count in (counters.get("nvlink_errors") or {}).values())


# (check, what is expected, whether the GPU has it, its faults, the questions it goes by)
CONDITIONS = (
    ("sram_errors", "below NVIDIA's threshold", has("sram"), sram, ("DeviceGetSramEccErrorStatus",)),
    ("aggregate_errors", "few", has("aggregate_errors"), aggregate, ("FI_DEV_ECC_DBE_AGG_TOTAL",)),
    ("spare_rows", "spare rows", has("spare_rows"), spare_rows, ("DeviceGetRowRemapperHistogram",)),
    ("nvlink_errors", "few", counts_links, nvlink_errors,
     ("FI_DEV_NVLINK_ERROR_DL_REPLAY", "FI_DEV_NVLINK_ERROR_DL_RECOVERY", "FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS",
      "FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL")),
    ("pcie_replays", "few", has("pcie_replays"), pcie_replays, ("FI_DEV_PCIE_REPLAY_COUNTER",)),
    ("temperature", "below its limits", has_temperature, temperature,
     ("DeviceGetMarginTemperature", "DeviceGetTemperature", "DeviceGetTemperatureThreshold", "FI_DEV_MEMORY_TEMP",
      "FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT", "FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT")),
    ("recovery_action", "none", has("recovery_action"), recovery_action, ("FI_DEV_GET_GPU_RECOVERY_ACTION",)),
    ("inforom", "valid", has("inforom_valid"), inforom, ("DeviceValidateInforom",)),
)  # fmt: skip
# Judged only where the user says how many are tolerable.
OPTIONAL = {"aggregate_errors": "max_aggregate_errors"}


def condition(check, gpus, context):
    """Judge one of CONDITIONS; ``gpus``: [(gpu, counters)], ``context``: {``limits``, ``uptime_seconds``}."""
    expected, is_known, faults_of, questions = next(row[1:] for row in CONDITIONS if row[0] == check)
    if check in OPTIONAL and context["limits"][OPTIONAL[check]] is None:
        return []
    known, found = [], []
    for gpu, counters in gpus:
        name = gpu_label(gpu)
        refused = [no_answer(check, expected, name, counters, question) for question in questions]
        found += [one for one in refused if one][:1]
        if is_known(counters):
            known.append(gpu)
            found += faults_of(name, counters, gpu, context)
    return [judged(check, expected, "%s on %s" % (expected, number_of(known)), found)] if known or found else []
