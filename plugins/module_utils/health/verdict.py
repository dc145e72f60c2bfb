# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a node's GPUs: pure functions of gpu_node and what health.reading gave."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.describe import describe
from ..machine.problems import with_code
from ..machine.topology import gpu_label
from .coherence import judge_coherence
from .findings import finding, judged, number_of, verdict
from .links import links

CATEGORY = "health"
# NVIDIA's "XID Errors": of these the GPU does not recover by itself …
FATAL_XIDS = (48, 62, 64, 74, 79, 95, 119, 120, 136, 140, 143)
# … and these tell of the application, not of the GPU.
APPLICATION_XIDS = (13, 31, 43, 45, 68, 69)
# Which checks judge what gpu_node calls a problem; all else is among other_problems.
JUDGES = {
    "driver_mismatch": ("driver_library",),
    "fabric_not_ready": ("fabric",),
    "gpu_not_in_nvml": ("gpu_answers",),
    "gpu_not_opened": ("gpu_answers",),
    "nvlinks_inactive": ("nvlinks",),
    "nvml_unavailable": ("nvml", "driver_library"),
    "pcie_link_narrow": ("pcie_width",),
}
# What an idle or power-capped GPU has is normal.
THROTTLING = ("hardware_slowdown", "software_thermal", "hardware_thermal", "power_brake")


def judge(node, readings, limits):
    """Return {``verdict``, ``findings``, ``judged``, ``counters``}.

    ``readings``: ``counters`` {pci_bus_id: …} and ``xids`` or None, see health.reading. ``limits``: the module's options.
    """
    entries = judge_coherence(node)
    if node["gpus"] or limits["gpu_count"]:
        entries += presence(node, limits)
    if node["gpus"]:
        gpus = [(gpu, readings["counters"].get(gpu["pci_bus_id"], {})) for gpu in node["gpus"] if answers(gpu)]
        entries += links(node, gpus) + memory(gpus, limits) + [log(node, readings["xids"], limits)]
        entries += clocks(gpus, limits) + pending_modes([gpu for gpu, dummy in gpus])
        entries.append(others(node, {entry["check"] for entry in entries}))
    findings = [found for entry in entries for found in entry["findings"]]
    return {
        "verdict": verdict(findings),
        "findings": findings,
        "judged": [{key: value for key, value in entry.items() if key != "findings"} for entry in entries],
        "counters": {gpu_label(gpu): readings["counters"].get(gpu["pci_bus_id"]) for gpu in node["gpus"]},
    }


def answers(gpu):
    return "nvml" in gpu["seen_by"]


def presence(node, limits):
    """Judge whether there are as many GPUs as declared, and every one answers.

    health_coherence says where NVML cannot be asked.
    """
    gpus, entries = node["gpus"], []
    if limits["gpu_count"]:
        problem, expected = None, limits["gpu_count"]
        if len(gpus) != expected:
            fewer = len(gpus) < expected
            action = "look for lost GPUs in the kernel log, reseat them" if fewer else "declare them, or remove them"
            problem = finding("gpu_count", expected, len(gpus), "failed" if fewer else "degraded", action)
        entries.append(judged("gpu_count", CATEGORY, expected, len(gpus), [problem]))
    if gpus and node["driver"]["nvml_state"] == "ok":
        refused = with_code(node["findings"], "gpu_not_opened")
        # NVML does not tell the address of a GPU that it cannot open: it is one of those that do not answer.
        silent = [gpu_label(gpu) for gpu in gpus if not answers(gpu)] or [problem["subject"] for problem in refused]
        text = "; ".join(describe(problem) for problem in refused) or "none"
        severity = "failed" if refused else "degraded"
        action = "reset or reboot" if refused else "reset or reboot; unless a job's device cgroup hides it"
        found = [finding("gpu_answers", "an answer", text, severity, action, name) for name in silent]
        answering = "%d of %d" % (len([gpu for gpu in gpus if answers(gpu)]), len(gpus))
        entries.append(judged("gpu_answers", CATEGORY, "every GPU on the bus", answering, found))
    return entries


def memory(gpus, limits):
    """Judge uncorrected errors, and row remapping (Ampere and newer) or page retirement (older), of GPUs with ECC."""
    guarded = [(gpu, counters) for gpu, counters in gpus if gpu["ecc"]["current"]]
    old = [(gpu, counters) for gpu, counters in guarded if counters.get("retired_pages_pending") is not None]
    new = [pair for pair in guarded if pair not in old or pair[1].get("remapped_rows")]
    errors = [error_finding(gpu_label(gpu), counters.get("uncorrected_errors"), limits) for gpu, counters in guarded]
    rows = [found for gpu, counters in new for found in row_findings(gpu_label(gpu), counters, limits)]
    pages = [
        finding("page_retirement", "nothing pending", "pending", "reboot_required", "reset the GPU", gpu_label(gpu))
        for gpu, counters in old
        if counters["retired_pages_pending"]
    ]
    tolerated = "at most %d uncorrected" % limits["max_uncorrected_errors"]
    found = [("ecc_errors", guarded, tolerated, errors), ("row_remapping", new, "nothing pending", rows)]
    found.append(("page_retirement", old, "nothing pending", pages))
    return [
        judged(check, CATEGORY, expected, "%s on %s" % (expected, number_of(those)), findings)
        for check, those, expected, findings in found
        if those
    ]


def error_finding(name, errors, limits):
    expected = "at most %d uncorrected" % limits["max_uncorrected_errors"]
    if errors is None:
        return finding("ecc_errors", expected, None, "unknown", "NVML did not tell", name)
    if errors > limits["max_uncorrected_errors"]:
        return finding("ecc_errors", expected, errors, "failed", "drain and reset the GPU", name)
    return None


def row_findings(name, counters, limits):
    check, rows, most = "row_remapping", counters.get("remapped_rows"), limits["max_remapped_rows"]
    if rows is None:
        return [finding(check, "nothing pending", None, "unknown", "NVML did not tell", name)]
    found = []
    if rows.get("failed"):
        found.append(finding(check, "spare rows", "remapping failed", "failed", "replace the GPU", name))
    if rows.get("pending"):
        found.append(finding(check, "nothing pending", "pending", "reboot_required", "reset the GPU", name))
    if most is not None and rows.get("uncorrectable", 0) > most:
        text = "%d rows remapped" % rows["uncorrectable"]
        found.append(finding(check, "at most %d rows" % most, text, "degraded", "replace the GPU", name))
    return found


def log(node, xids, limits):
    """Judge the Xid events since boot, ``limits``' ``ignored_xids`` aside; ``xids`` None: the log could not be read."""
    if xids is None:
        action = "run with become to read the kernel log"
        return judged("xid", CATEGORY, "no events", None, [finding("xid", "no events", None, "unknown", action)])
    names = {gpu["pci_bus_id"].rpartition(".")[0]: gpu_label(gpu) for gpu in node["gpus"]}
    found = [
        finding(
            "xid", "no events", "Xid %d" % xid, "failed" if xid in FATAL_XIDS else "degraded",
            "look up the Xid; reset the GPU", names.get(address, address),
        )
        for address, xid in xids if xid not in limits["ignored_xids"]
    ]  # fmt: skip
    return judged("xid", CATEGORY, "no events", "no events", found)


def clocks(gpus, limits):
    """Judge what slows GPUs down and, where it is wanted, whether the driver stays loaded when they are idle."""
    if not gpus:
        return []
    slowed, action = [], "check cooling and power supply"
    for gpu, counters in gpus:
        name, reasons = gpu_label(gpu), counters.get("clock_reasons")
        if reasons is None:
            slowed.append(finding("throttling", "none", None, "unknown", "NVML did not tell", name))
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
            found.append(finding("persistence_mode", "on", None, "unknown", "NVML did not tell", name))
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
    found = [finding("other_problems", "none", describe(one), "degraded", "see what it says") for one in rest]
    return judged("other_problems", CATEGORY, "none", "none", found)
