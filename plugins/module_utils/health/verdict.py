# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a node's GPUs: pure functions of gpu_node and what health.reading gave."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.describe import describe
from ..machine.topology import gpu_label
from . import condition, host, nics
from .check_table import BY_CODE, FAULTS
from .coherence import judge_coherence
from .crashes import attempt, with_unread
from .findings import fault, judged, no_answer, number_of, verdict, without_findings
from .links import aer_errors, nvlinks, pcie_generation, pcie_width
from .log import judge_log
from .memory import memory
from .p2p_access import p2p_access
from .peers import COMPARED, COMPARED_COUNTERS, idle_temperature, models, peers, with_counters
from .presence import presence, usable
from .processes import stale_processes

# Which checks judge what gpu_node calls a problem; all else is among other_problems.
JUDGES = {
    "driver_mismatch": ("driver_library",),
    "fabric_not_ready": ("fabric",),
    "fabric_apart": ("fabric",),
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
COHERENCE = tuple(code for code, one in BY_CODE.items() if one.category == "coherence" and not one.across)
# What an idle or power-capped GPU has is normal, and none of these.
THROTTLING = [one.code for one in BY_CODE["throttling"].faults]


def judge(node, readings, limits):
    """Return {``verdict``, ``findings``, ``notes``, ``judged``, ``skipped_checks``, ``counters``}.

    ``readings``: ``counters`` {pci_bus_id: …}, see health.reading, and ``log``, the text or None, see health.kernel_log.
    ``limits``: the module's options.
    """
    entries = judge_checks(node, readings, limits)
    skipped = [entry["check"] for entry in entries if entry["check"] in limits["skip_checks"]]
    entries = [entry for entry in entries if entry["check"] not in skipped]
    findings = [found for entry in entries for found in entry["findings"]]
    return {
        "verdict": verdict(findings),
        "findings": findings,
        "notes": [note for entry in entries for note in entry["notes"]],
        "judged": [without_findings(entry) for entry in entries],
        "skipped_checks": skipped,
        "counters": {gpu_label(gpu): readings["counters"].get(gpu["pci_bus_id"]) for gpu in node["gpus"]},
    }


def judge_checks(node, readings, limits):
    """Return the entries of every check that applies to the node; a check that is skipped still knows its problems."""
    entries = attempt(COHERENCE, judge_coherence, node, readings.get("host") or {}, readings["log"])
    if node["gpus"] or limits["gpu_count"]:
        entries += attempt(("gpu_count", "gpu_answers"), presence, node, readings["counters"], limits)
    if node["gpus"]:
        gpus = usable(node, readings["counters"])
        for checks, judge_some, arguments in steps(node, gpus, readings, limits):
            entries += attempt(checks, judge_some, *arguments)
        entries = with_unread(entries, gpus, (readings.get("host") or {}).get("crashed", {}))
        entries += attempt(("other_problems",), others, node, {entry["check"] for entry in entries})
    return entries


def steps(node, gpus, readings, limits):
    """Return [(checks, function, its arguments)] of what is judged of GPUs that answer; one that crashes stops no other."""
    answering = [gpu for gpu, dummy in gpus]
    around = readings.get("host") or {}
    context = {"limits": limits, "uptime_seconds": around.get("uptime_seconds")}
    found = [
        (("pcie_width",), pcie_width, (answering,)),
        (("pcie_generation",), pcie_generation, (gpus,)),
        (("aer_errors",), aer_errors, (answering, around.get("aer") or {}, limits)),
        (("nvlinks",), nvlinks, (node, gpus)),
        (("p2p_access",), p2p_access, (answering, readings.get("p2p_access") or {}, node["topology"])),
        (("ecc_errors", "row_remapping", "page_retirement"), memory, (gpus, limits)),
    ]
    found += [((row[0],), condition.condition, (row[0], gpus, context)) for row in condition.CONDITIONS]
    return (
        found
        + [
            (("stale_processes",), stale_processes, (gpus, readings.get("processes"))),
            (("xid",), judge_log, (node, readings["log"], limits, around.get("uvm"))),
            (("throttling", "persistence_mode"), clocks, (gpus, limits)),
            (("pending_modes",), pending_modes, (answering,)),
            (("peer_model",), models, (answering, node["topology"])),
            (tuple(row[0] for row in COMPARED + COMPARED_COUNTERS), peers, (with_counters(gpus),)),
            (("peer_temperature",), idle_temperature, (gpus,)),
        ]
        + nics.steps(node, readings["log"], limits)
        + host.steps(around, readings["log"], limits)
    )


def clocks(gpus, limits):
    """Judge what slows GPUs down and, where it is wanted, whether the driver stays loaded when they are idle."""
    if not gpus:
        return []
    slowed = []
    for gpu, counters in gpus:
        name, reasons = gpu_label(gpu), counters.get("clock_reasons")
        if reasons is None:
            slowed.append(no_answer("throttling", "none", name, counters, "DeviceGetCurrentClocksThrottleReasons"))
        for reason in reasons or []:
            if reason in THROTTLING:
                slowed.append(fault("throttling", reason, "none", reason.replace("_", " "), name))
    entries = [judged("throttling", "none", "none on %s" % number_of(gpus), slowed)]
    if limits["persistence"]:
        found = persistence([gpu for gpu, dummy in gpus])
        entries.append(judged("persistence_mode", "on", "on for %s" % number_of(gpus), found))
    return entries


def persistence(gpus):
    found = []
    for gpu in gpus:
        name, mode = gpu_label(gpu), gpu["persistence_mode"]
        if mode is None:
            found.append(no_answer("persistence_mode", "on", name, gpu, "DeviceGetPersistenceMode"))
        elif not mode:
            found.append(fault("persistence_mode", "off", "on", "off", name))
    return found


def pending_modes(gpus):
    """Judge whether a switch of ECC or MIG waits for the GPU's reset."""
    found, known = [], []
    for gpu in gpus:
        refused = no_answer("pending_modes", "none pending", gpu_label(gpu), gpu, "DeviceGetMigMode")
        found += [refused] if refused else []
        for mode in ("ecc", "mig"):
            values = gpu.get(mode) or {}
            if values.get("pending") is not None:
                known.append(gpu)
                if values["pending"] != values["current"]:
                    words = ["on" if values[when] else "off" for when in ("pending", "current")]
                    text = "%s is %s" % (mode.upper(), words[1])
                    expected = "%s %s" % (mode.upper(), words[0])
                    found.append(fault("pending_modes", "pending", expected, text, gpu_label(gpu)))
    return [judged("pending_modes", "none pending", "none pending", found)] if known or found else []


def others(node, checks):
    """Judge what gpu_node calls a problem and none of these checks covers, such as ACS between peers."""
    rest = [problem for problem in node["findings"] if not checks.intersection(JUDGES.get(problem["code"], ()))]
    found = [fault("other_problems", named(one["code"]), "none", describe(one)) for one in rest]
    return judged("other_problems", "none", "none", found)


def named(code):
    """Return the fault of a problem; those that have none of their own are ``other``."""
    return code if ("other_problems", code) in FAULTS else "other"
