# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the PCIe links and the NVLinks of a node's GPUs."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.describe import describe
from ..machine.nvlink_models import count_active
from ..machine.problems import with_code
from ..machine.topology import gpu_label
from .findings import fault, judged, number_of


def links(node, gpus):
    """Judge PCIe width, PCIe speed where the GPU works at full clocks (idle ones lower it), and NVLinks."""
    entries = []
    known = [gpu for gpu, dummy in gpus if gpu["pcie"]["width"] and gpu["pcie"]["max_width"]]
    if known:
        found = [
            fault("pcie_width", "narrow", "x%d" % gpu["pcie"]["max_width"], "x%d" % gpu["pcie"]["width"], gpu_label(gpu))
            for gpu in known if gpu["pcie"]["width"] < gpu["pcie"]["max_width"]
        ]  # fmt: skip
        entries.append(judged("pcie_width", "full", "full on %s" % number_of(known), found))
    busy = [gpu for gpu, counters in gpus if works(counters) and gpu["pcie"].get("generation")]
    slow = [gpu for gpu in busy if gpu["pcie"]["generation"] < (gpu["pcie"].get("max_generation") or 0)]
    if busy:
        found = [
            fault("pcie_generation", "slow", gpu["pcie"]["max_generation"], gpu["pcie"]["generation"], gpu_label(gpu))
            for gpu in slow
        ]  # fmt: skip
        entries.append(judged("pcie_generation", "full", "full on %s" % number_of(busy), found))
    return entries + nvlinks(node, gpus)


def works(counters):
    """Tell whether a GPU is at its highest clocks and not idle: then nothing lowers the PCIe generation."""
    reasons = counters.get("clock_reasons")
    return counters.get("performance_state") == 0 and reasons is not None and "idle" not in reasons


def nvlinks(node, gpus):
    """Judge the NVLinks of a node that uses some, or whose GPUs should: none is among gpu_node's problems."""
    active = {gpu_label(gpu): count_active(gpu) for gpu, dummy in gpus}
    lacking = [one for one in with_code(node["findings"], "nvlinks_inactive") if one["subject"] in active]
    if not any(active.values()) and not lacking:
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
    return [judged("nvlinks", "all that are joined", "%s active on each GPU" % counts, found)]


def number_active(links):
    return "%d active" % links
