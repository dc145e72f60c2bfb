# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the PCIe links and the NVLinks of a node's GPUs."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.describe import describe
from ..machine.nvlink_models import count_active
from ..machine.nvml_gpus import SPEED_FIELD
from ..machine.problems import with_code
from ..machine.topology import gpu_label
from .findings import fault, judged, no_answer, number_of
from .peers import of_one_model, usual


def pcie_width(gpus):
    """Judge the number of lanes, as NVML or else sysfs has it."""
    known = [gpu for gpu in gpus if gpu["pcie"]["width"] and gpu["pcie"]["max_width"]]
    found = [
        fault("pcie_width", "narrow", "x%d" % gpu["pcie"]["max_width"], "x%d" % gpu["pcie"]["width"], gpu_label(gpu))
        for gpu in known if gpu["pcie"]["width"] < gpu["pcie"]["max_width"]
    ]  # fmt: skip
    refused = [
        no_answer("pcie_width", "full", gpu_label(gpu), gpu, "DeviceGetCurrPcieLinkWidth")
        for gpu in gpus
        if gpu not in known
    ]
    found += [one for one in refused if one] + less_than_peers("pcie_width", gpus, "max_width", "x%d")
    return [judged("pcie_width", "full", "full on %s" % number_of(known), found)] if known or found else []


def pcie_generation(gpus):
    """Judge PCIe speed where the GPU works at full clocks, since idle ones lower it; where NVML does not say, a low one is unknown."""
    known = [pair for pair in gpus if pair[0]["pcie"].get("generation")]
    slow = [pair for pair in known if pair[0]["pcie"]["generation"] < (pair[0]["pcie"].get("max_generation") or 0)]
    busy = [gpu for gpu, counters in known if works(counters)]
    found = [
        fault("pcie_generation", "slow", gpu["pcie"]["max_generation"], gpu["pcie"]["generation"], gpu_label(gpu))
        for gpu, counters in slow
        if works(counters)
    ]
    refused = [
        no_answer("pcie_generation", "full", gpu_label(gpu), counters, "DeviceGetPerformanceState")
        for gpu, counters in slow
        if "idle" not in (counters.get("clock_reasons") or ())
    ]
    found += [one for one in refused if one]
    found += less_than_peers("pcie_generation", [gpu for gpu, dummy in gpus], "max_generation", "generation %d")
    return [judged("pcie_generation", "full", "full on %s" % number_of(busy), found)] if busy or found else []


def less_than_peers(check, gpus, key, words):
    """Find GPUs that with their slots support less than most of their model do, whatever they have now."""
    found = []
    for group in of_one_model([gpu for gpu in gpus if gpu["pcie"].get(key)]):
        most = usual([gpu["pcie"][key] for gpu in group])
        for gpu in group if most else ():
            if gpu["pcie"][key] < most:
                found.append(fault(check, "slot", words % most, words % gpu["pcie"][key], gpu_label(gpu)))
    return found


def aer_errors(gpus, aer, limits):
    """Judge the errors that the kernel has counted at both ends of GPUs' links; ``aer``: see host_reading."""
    known, found = [gpu for gpu in gpus if gpu["pci_bus_id"] in aer], []
    for gpu in known:
        for kind, option in (("fatal", "max_aer_fatal"), ("nonfatal", "max_aer_nonfatal")):
            count, most = aer[gpu["pci_bus_id"]].get(kind), limits[option]
            if count is not None and most is not None and count > most:
                found.append(fault("aer_errors", kind, "at most %d %s" % (most, kind), count, gpu_label(gpu)))
    return [judged("aer_errors", "few", "few on %s" % number_of(known), found)] if known else []


def works(counters):
    """Return True if a GPU is at its highest clocks and not idle: then nothing lowers the PCIe generation."""
    reasons = counters.get("clock_reasons")
    return counters.get("performance_state") == 0 and reasons is not None and "idle" not in reasons


def nvlinks(node, gpus):
    """Judge the NVLinks of a node that uses some, or whose GPUs should: none is among gpu_node's problems."""
    active = {gpu_label(gpu): count_active(gpu) for gpu, dummy in gpus}
    lacking = [one for one in with_code(node["findings"], "nvlinks_inactive") if one["subject"] in active]
    refused = [one for gpu, dummy in gpus for one in undecided(gpu)]
    if not any(active.values()) and not lacking and not refused:
        return []
    found = [
        fault("nvlinks", "inactive", number_active(one["detail"]["expected"]), number_active(one["detail"]["active"]),
              one["subject"])
        for one in lacking
    ]  # fmt: skip
    found += [
        fault("nvlinks", "slow", "%d MB/s" % one["detail"]["expected"], describe(one), one["subject"])
        for one in with_code(node["findings"], "nvlinks_slow") if one["subject"] in active
    ]  # fmt: skip
    counts = ", ".join(str(count) for count in sorted(set(active.values()), reverse=True))
    return [judged("nvlinks", "all that are joined", "%s active on each GPU" % counts, found + refused)]


def undecided(gpu):
    """Find that NVML did not say how a GPU's links are, or of which model a GPU with links is."""
    if (gpu.get("mig") or {}).get("current"):
        return []
    functions = ("DeviceGetName",) if gpu["nvlinks"] else ()
    functions += ("DeviceGetNvLinkState", SPEED_FIELD)
    found = [no_answer("nvlinks", "all that are joined", gpu_label(gpu), gpu, function) for function in functions]
    return [one for one in found if one][:1]


def number_active(links):
    return "%d active" % links
