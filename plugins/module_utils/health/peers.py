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
CLOCKS = ("graphics", "sm", "memory")


def power_limit(gpu):
    watts = gpu["power_limit_watts"]["current"]
    return None if watts is None else "%s W" % watts


def clocks(gpu):
    known = gpu["max_clocks_mhz"] or {}
    return "/".join(str(known.get(clock)) for clock in CLOCKS) + " MHz" if known else None


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
    """Return what the size of memory depends on."""
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


def peers(gpus):
    """Judge GPUs that answer by what most others have; what a GPU does not have is not compared."""
    entries = []
    for check, value, among, function in COMPARED if len(gpus) >= FEWEST else ():
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


def unlike(check, group):
    """Return findings for those of [(gpu, text)] that have not what more than half of them have."""
    usual, count = Counter(text for dummy, text in group).most_common(1)[0]
    if 2 * count <= len(group):
        return []
    return [fault(check, "unlike", usual, text, gpu_label(gpu)) for gpu, text in group if text != usual]
