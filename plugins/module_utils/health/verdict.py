# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a node's GPUs: pure functions of gpu_node and what health.reading gave."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.describe import describe
from ..machine.topology import gpu_label
from .coherence import judge_coherence
from .findings import finding, judged, no_answer, number_of, verdict
from .links import links
from .log import judge_log
from .memory import memory
from .presence import presence, usable

CATEGORY = "health"
# Which checks judge what gpu_node calls a problem; all else is among other_problems.
JUDGES = {
    "driver_mismatch": ("driver_library",),
    "fabric_not_ready": ("fabric",),
    "fabric_split": ("fabric",),
    "fabric_unhealthy": ("fabric",),
    "gpu_failing": ("gpu_answers",),
    "gpu_held": ("gpu_answers",),
    "gpu_not_in_nvml": ("gpu_answers",),
    "gpu_not_opened": ("gpu_answers",),
    "nvlinks_inactive": ("nvlinks",),
    "nvlinks_slow": ("nvlinks",),
    "nvml_unavailable": ("nvml", "driver_library"),
    "pcie_link_narrow": ("pcie_width",),
}
# What to do about a problem that only other_problems names.
ACTIONS = {
    "rail_down": "look at the adapter's cable and the port of the switch",
    "rail_slow": "look at the adapter's cable, the port of the switch and what speed they agreed on",
}
# What an idle or power-capped GPU has is normal.
THROTTLING = ("hardware_slowdown", "software_thermal", "hardware_thermal", "power_brake")


def judge(node, readings, limits):
    """Return {``verdict``, ``findings``, ``judged``, ``counters``}.

    ``readings``: ``counters`` {pci_bus_id: …}, see health.reading, and ``log``, the text or None, see health.kernel_log.
    ``limits``: the module's options.
    """
    entries = judge_coherence(node)
    if node["gpus"] or limits["gpu_count"]:
        entries += presence(node, readings["counters"], limits)
    if node["gpus"]:
        gpus = usable(node, readings["counters"])
        entries += links(node, gpus) + memory(gpus, limits) + [judge_log(node, readings["log"], limits)]
        entries += clocks(gpus, limits) + pending_modes([gpu for gpu, dummy in gpus])
        entries.append(others(node, {entry["check"] for entry in entries}))
    findings = [found for entry in entries for found in entry["findings"]]
    return {
        "verdict": verdict(findings),
        "findings": findings,
        "judged": [{key: value for key, value in entry.items() if key != "findings"} for entry in entries],
        "counters": {gpu_label(gpu): readings["counters"].get(gpu["pci_bus_id"]) for gpu in node["gpus"]},
    }


def clocks(gpus, limits):
    """Judge what slows GPUs down and, where it is wanted, whether the driver stays loaded when they are idle."""
    if not gpus:
        return []
    slowed, action = [], "check cooling and power supply"
    for gpu, counters in gpus:
        name, reasons = gpu_label(gpu), counters.get("clock_reasons")
        if reasons is None:
            slowed.append(no_answer("throttling", "none", name, counters, "DeviceGetCurrentClocksThrottleReasons"))
        for reason in reasons or []:
            if reason in THROTTLING:
                slowed.append(finding("throttling", "none", reason.replace("_", " "), "degraded", action, name))
    entries = [judged("throttling", CATEGORY, "none", "none on %s" % number_of(gpus), slowed)]
    if limits["persistence"]:
        entries.append(
            judged(
                "persistence_mode",
                CATEGORY,
                "on",
                "on for %s" % number_of(gpus),
                persistence([gpu for gpu, dummy in gpus]),
            )
        )
    return entries


def persistence(gpus):
    found = []
    for gpu in gpus:
        name, mode = gpu_label(gpu), gpu["persistence_mode"]
        if mode is None:
            found.append(no_answer("persistence_mode", "on", name, gpu, "DeviceGetPersistenceMode"))
        elif not mode:
            found.append(finding("persistence_mode", "on", "off", "degraded", "start nvidia-persistenced", name))
    return found


def pending_modes(gpus):
    """Judge whether a switch of ECC or MIG waits for the GPU's reset."""
    found, known = [], []
    for gpu in gpus:
        for mode in ("ecc", "mig"):
            values = gpu.get(mode) or {}
            if values.get("pending") is not None:
                known.append(gpu)
                if values["pending"] != values["current"]:
                    words = ["on" if values[when] else "off" for when in ("pending", "current")]
                    text = "%s is %s" % (mode.upper(), words[1])
                    expected = "%s %s" % (mode.upper(), words[0])
                    found.append(
                        finding("pending_modes", expected, text, "reboot_required", "reset the GPU", gpu_label(gpu))
                    )
    return [judged("pending_modes", CATEGORY, "none pending", "none pending", found)] if known else []


def others(node, checks):
    """Judge what gpu_node calls a problem and none of these checks covers, such as ACS between peers."""
    rest = [problem for problem in node["findings"] if not checks.intersection(JUDGES.get(problem["code"], ()))]
    found = [
        finding("other_problems", "none", describe(one), "degraded", ACTIONS.get(one["code"], "see what it says"))
        for one in rest
    ]
    return judged("other_problems", CATEGORY, "none", "none", found)
