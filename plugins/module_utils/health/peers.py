# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the GPUs of a node with each other: one that is unlike most others of its model slows all of them down."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from collections import Counter

from ..machine.topology import gpu_label
from .findings import fault, judged, no_answer, number_of

FEWEST = 3  # two have no majority
EXPECTED = "as on most of its model"
# Degrees, ours: by its place in the air an idle GPU may be 10 to 20 warmer than another, and one that has just worked cools down to that
# within seconds.
WARMER = 25
CLOCKS = ("graphics", "sm", "memory")


def power_limit(gpu):
    watts = gpu["power_limit_watts"]["current"]
    return None if watts is None else "%s W" % watts


def clocks(gpu):
    known = gpu["max_clocks_mhz"] or {}
    return "/".join(str(known.get(clock)) for clock in CLOCKS) + " MHz" if known else None


def application_clocks(gpu):
    """Return the clocks at which applications run; NVML tells them with a GPU's counters, and facts have none."""
    known = gpu.get("application_clocks") or {}
    return None if None in known.values() or not known else "%(graphics)d/%(memory)d MHz" % known


def memory(gpu):
    """Return whole GiB, since a display takes some MiB of what NVML counts."""
    mib = gpu["memory_total_mib"]
    return None if mib is None else "%d GiB" % round(mib / 1024.0)


def mode(name):
    def of(gpu):
        current = gpu[name]["current"]
        return None if current is None else "on" if current else "off"

    return of


def model(gpu):
    return gpu["name"]


def model_and_modes(gpu):
    """Return the properties on which the size of memory depends."""
    return gpu["name"], gpu["ecc"]["current"], gpu["mig"]["current"]


# (check, what is compared as text, among which GPUs)
# (check, what is compared, with which others, NVML's function)
COMPARED = (
    ("peer_power_limit", power_limit, model, "DeviceGetPowerManagementLimit"),
    ("peer_clocks", clocks, model, "DeviceGetMaxClockInfo"),
    ("peer_vbios", lambda gpu: gpu["vbios_version"], model, "DeviceGetVbiosVersion"),
    ("peer_inforom", lambda gpu: gpu["inforom_version"], model, "DeviceGetInforomImageVersion"),
    ("peer_memory", memory, model_and_modes, "DeviceGetMemoryInfo"),
    ("peer_mig_mode", mode("mig"), model, "DeviceGetMigMode"),
    ("peer_ecc_mode", mode("ecc"), model, "DeviceGetEccMode"),
    ("peer_compute_mode", lambda gpu: gpu["compute_mode"], model, "DeviceGetComputeMode"),
)

# The same of what is read with a GPU's counters, and not among a node's facts.
COMPARED_COUNTERS = (("peer_application_clocks", application_clocks, model, "DeviceGetApplicationsClock"),)


def with_counters(pairs):
    """Return GPUs with what is compared of their counters, and NVML's errors of both."""
    return [
        dict(
            gpu,
            application_clocks=counters.get("application_clocks"),
            nvml_errors=dict(gpu.get("nvml_errors") or {}, **counters.get("nvml_errors") or {}),
        )
        for gpu, counters in pairs
    ]


def peers(gpus):
    """Judge GPUs that answer by what most others have; what a GPU does not have is not compared."""
    entries = []
    for check, value, among, function in COMPARED + COMPARED_COUNTERS if len(gpus) >= FEWEST else ():
        groups, found = {}, []
        for gpu in gpus:
            refused = missing(check, gpu, value, function)
            if refused:
                found.append(refused)
            elif gpu["name"] and value(gpu) is not None:
                groups.setdefault(among(gpu), []).append((gpu, value(gpu)))
        large = [group for group in groups.values() if len(group) >= FEWEST]
        if large or found:
            found += [one for group in large for one in unlike(check, group)]
            alike = "alike on %s" % number_of([gpu for group in large for gpu in group])
            entries.append(judged(check, EXPECTED, alike, found))
    return entries


def models(gpus, topology):
    """Judge whether GPUs that NVLink joins are of one model; cards that only share a node need not be."""
    groups = {}
    for gpu in gpus:
        if gpu["name"]:
            groups.setdefault(min(joined(gpu_label(gpu), topology)), []).append((gpu, gpu["name"]))
    large = [group for group in groups.values() if len(group) >= FEWEST]
    found = [one for group in large for one in unlike("peer_model", group)]
    alike = "alike on %s" % number_of([gpu for group in large for gpu in group])
    return [judged("peer_model", "as those that NVLink joins it with", alike, found)] if large else []


def joined(label, topology):
    """Return the GPUs that NVLink joins with one, over others too, and itself."""
    found, waiting = set(), {label}
    while waiting:
        one = waiting.pop()
        found.add(one)
        waiting.update(other for other, code in topology.get(one, {}).items() if (code or "").startswith("NV"))
        waiting -= found
    return found


def missing(check, gpu, value, function):
    """Find that NVML did not say what is compared, or what the GPU is called; None of what the GPU does not have."""
    found = no_answer(check, EXPECTED, gpu_label(gpu), gpu, function) if value(gpu) is None else None
    return found or (None if gpu["name"] else no_answer(check, EXPECTED, gpu_label(gpu), gpu, "DeviceGetName"))


def of_one_model(gpus, fewest=FEWEST):
    """Return lists of GPUs of one model, those that are long enough: for a majority, where ``fewest`` is not given."""
    groups = {}
    for gpu in gpus:
        if gpu["name"]:
            groups.setdefault(gpu["name"], []).append(gpu)
    return [group for group in groups.values() if len(group) >= fewest]


def usual(values):
    """Return the value of more than half of them; None where no value has a majority."""
    value, count = Counter(values).most_common(1)[0]
    return value if 2 * count > len(values) else None


def unlike(check, group):
    """Return findings for those of [(gpu, text)] that have not what more than half of them have."""
    most = usual([text for dummy, text in group])
    return [fault(check, "unlike", most, text, gpu_label(gpu)) for gpu, text in group if most and text != most]


def idle_temperature(pairs):
    """Judge [(gpu, counters)] that are idle by the median of the other idle ones of their model; of two, the warmer is at fault."""
    check, expected = "peer_temperature", "as idle ones of its model"
    idle = [(gpu, counters) for gpu, counters in pairs if is_idle(counters) and counters.get("temperature") is not None]
    groups, found = of_one_model([gpu for gpu, dummy in idle], 2), []
    degrees = {gpu_label(gpu): counters["temperature"] for gpu, counters in idle}
    for group in groups:
        for gpu in group:
            others = sorted(degrees[gpu_label(one)] for one in group if one is not gpu)
            most = others[len(others) // 2] + WARMER
            if degrees[gpu_label(gpu)] > most:
                text = "%d degrees" % degrees[gpu_label(gpu)]
                found.append(fault(check, "warm", "at most %d degrees" % most, text, gpu_label(gpu)))
    alike = "alike on %s" % number_of([gpu for group in groups for gpu in group])
    return [judged(check, expected, alike, found)] if groups else []


def is_idle(counters):
    return "idle" in (counters.get("clock_reasons") or ())
